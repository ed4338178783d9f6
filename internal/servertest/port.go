package servertest

import (
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// port is a TCP port of 127.0.0.1 that nobody else is given while it is held.
//
// The usual trick, to listen on port 0, read the number and close, leaves the
// port to whoever asks next, and test processes run beside each other. Here a
// socket stays bound without listening: a server with SO_REUSEADDR (all of ours)
// can listen on the port, the kernel never hands it out, and while the server is
// down connections are refused.
type port struct {
	fd     int
	number int
}

func reservePort() (*port, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("servertest: reserving a port: %w", err)
	}
	number, err := bind(fd)
	if err != nil {
		_ = syscall.Close(fd) // the error of bind says more
		return nil, fmt.Errorf("servertest: reserving a port: %w", err)
	}
	return &port{fd: fd, number: number}, nil
}

func bind(fd int) (int, error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	in4, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("not an IPv4 socket: %T", name)
	}
	return in4.Port, nil
}

func (p *port) String() string { return strconv.Itoa(p.number) }

func (p *port) addr() string { return net.JoinHostPort("127.0.0.1", p.String()) }

func (p *port) release() { _ = syscall.Close(p.fd) }
