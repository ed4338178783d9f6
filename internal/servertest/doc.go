// Package servertest gives tests real servers: Redis, PostgreSQL and MariaDB as
// child processes on free loopback ports, and a [Proxy] that breaks the network
// in front of them.
//
// A server whose binary is missing skips the test, with the reason; under
// PAWL_TEST_REQUIRE=1 it fails it. Every server dies with the test process, also
// when that panics or is killed, and keeps its port until its test has ended, so
// that a restart finds it free.
//
// Servers that run already are used when their address is given. They must be
// there for tests alone: tests flush and configure them. Faults that need the
// process (Pause, Kill, Restart) skip the test there.
//
//	PAWL_TEST_REDIS=127.0.0.1:6379
//	PAWL_TEST_POSTGRES='postgres://postgres:pw@127.0.0.1:5432/%s?sslmode=disable'
//	PAWL_TEST_MARIADB='root:pw@tcp(127.0.0.1:3306)/%s?parseTime=true'
//
// where %s stands for the name of a database. PAWL_SOAK=1 asks for the full
// counts, see [Count].
package servertest
