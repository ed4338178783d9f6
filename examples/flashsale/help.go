package main

import (
	"fmt"
	"time"
)

// help is the text of -h, at most 80 columns wide.
func help() string {
	return fmt.Sprintf(`Flashsale sells more units than it has, twice, and then exactly what it has.

usage: go run ./examples/flashsale [flags]

More buyers than units come to a sale. They are served by several processes of
the operating system on one database. To buy is to read how many units are left,
to think for %[1]d ms (a payment provider answers), and to write an order for the
last unit together with the new count. The same code runs three times:

  (a) no lock         Buyers decide at the same time by the same count.
  (b) lock only       One buyer at a time, by guard.WithLock. One holder of the
                      lock is frozen (SIGSTOP) between its read and its write,
                      longer than its lease of %[2]d s; the others go on; then it
                      wakes up (SIGCONT) and writes.
  (c) lock and fence  As (b), and the database has the gormguard plugin, which
                      refuses a holder once a later one has come.

Nothing is left to luck. In (a) the first buyer of every process has read before
any of them writes. In (b) and (c) the frozen holder goes on only after others
have sold. A purchase does not withdraw its write when its context ends: a
statement that is on its way cannot be called back, and a freeze may always come
after the last check. (Where one statement can decide, as in UPDATE ... SET
units = units - 1 WHERE units > 0, neither lock nor fence is needed.)

columns
  units         there were
  sold          orders in the database
  oversold      orders beyond the units
  double sold   units that more than one order was written for
  stale refused accesses of a late holder that the fence refused; its buyer
                comes again and gets a unit or is told that they are sold out
  waits         buyers that waited more than %[3]d ms for the lock
  orders/s      from the first buyer to the last order, without the time in
                which a frozen holder's lease ran out

flags
  -lock URL       where the lock is: %[4]q for that of -db (default), or
                  redis://[user:password@]host:port[/number]
  -db URL         where items and orders are: a path of an SQLite file, or
                  postgres://user:password@host:port/name[?sslmode=disable], or
                  mysql://user:password@host:port/name for MySQL and MariaDB
                  (default: an SQLite file in a temporary directory)
  -buyers N       buyers, at most %[5]d (default %[6]d)
  -units N        units for sale, fewer than buyers (default %[7]d)
  -processes N    processes that sell, %[8]d to %[9]d (default %[10]d)

What is created in a temporary directory is removed, also after Ctrl-C. In a
database of yours the tables flashsale_items and flashsale_orders are left, and
empty; in pawl_locks and pawl_fences a row or two are left of each run.

exit status
  0  (a) and (b) showed harm, (c) was exact
  1  they did not, or the program could not run to its end
  2  a flag is wrong
`, thinkTime.Milliseconds(), leaseTTL/time.Second, waitOver.Milliseconds(), lockInDatabase, maxBuyers, defaultBuyers, defaultUnits, minProcesses, maxProcesses, defaultProcesses)
}
