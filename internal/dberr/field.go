package dberr

import "reflect"

// Field finds a field of that name in the struct err, or in one of the errors
// that it wraps, joined ones included; an invalid value if there is none. So an
// error of go-sql-driver/mysql (Number, SQLState) or mattn/go-sqlite3 (Code) is
// told without importing the driver.
func Field(err error, name string) reflect.Value {
	if v := reflect.Indirect(reflect.ValueOf(err)); v.Kind() == reflect.Struct {
		if f := v.FieldByName(name); f.IsValid() {
			return f
		}
	}
	switch e := err.(type) { //nolint:errorlint // this is the walk
	case interface{ Unwrap() error }:
		return Field(e.Unwrap(), name)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if f := Field(err, name); f.IsValid() {
				return f
			}
		}
	}
	return reflect.Value{}
}

// Int is Field as an integer; 0 if there is none.
func Int(err error, name string) int64 {
	switch f := Field(err, name); {
	case f.IsValid() && f.CanInt():
		return f.Int()
	case f.IsValid() && f.CanUint():
		return int64(f.Uint()) //nolint:gosec // error numbers are small
	}
	return 0
}
