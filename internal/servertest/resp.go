package servertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// respDo sends one command to a Redis server and returns its reply: string,
// int64, []any or nil. It is here because a client library dials again, retries
// and remembers errors, none of which is wanted while a server starts.
func respDo(ctx context.Context, addr string, args ...string) (any, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // one command was all
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	var request strings.Builder
	fmt.Fprintf(&request, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(conn, request.String()); err != nil {
		return nil, err
	}
	return readReply(bufio.NewReader(conn))
}

func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errors.New("empty reply")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, errors.New(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, err
	}
	switch {
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil // the null reply
	case kind == '$':
		return readBulk(r, n)
	case kind == '*':
		return readArray(r, n)
	}
	return nil, fmt.Errorf("unknown reply %q", line)
}

func readBulk(r *bufio.Reader, n int64) (any, error) {
	text := make([]byte, n+2)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	return string(text[:n]), nil
}

func readArray(r *bufio.Reader, n int64) (any, error) {
	all := make([]any, n)
	for i := range all {
		v, err := readReply(r)
		if err != nil {
			return nil, err
		}
		all[i] = v
	}
	return all, nil
}

// respMap asks for a reply of names and values, flat or in lines of name:value.
func respMap(ctx context.Context, addr string, args ...string) (map[string]string, error) {
	reply, err := respDo(ctx, addr, args...)
	if err != nil {
		return nil, err
	}
	values := make(map[string]string)
	switch reply := reply.(type) {
	case string:
		for line := range strings.SplitSeq(reply, "\r\n") {
			if name, value, ok := strings.Cut(line, ":"); ok {
				values[name] = value
			}
		}
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			values[fmt.Sprint(reply[i])] = fmt.Sprint(reply[i+1])
		}
	}
	return values, nil
}
