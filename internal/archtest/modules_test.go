package archtest_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestModules_LinkedByEachPackage holds what a user pays for an import. It names no
// versions: those are in go.mod.
func TestModules_LinkedByEachPackage(t *testing.T) {
	g := packages(t)
	want := goldenFiles(t, "modules")
	for _, name := range g.public() {
		got := strings.Join(g.modules(module+"/"+name), "\n")
		want.compare(t, name, strings.TrimLeft(got+"\n", "\n"))
	}
	want.rest(t)
}

func TestModules_RedisServiceLinksNoOtherStore(t *testing.T) {
	g := packages(t)
	unwanted := regexp.MustCompile(`etcd|zookeeper|/zk|gorm|gin-gonic|grpc|protobuf|mysql|postgres|pgx|sqlite`)
	paths := g.closure(module+"/guard", module+"/backends/redisstore")
	if len(paths) < 50 {
		t.Fatalf("got %d packages, want a whole program", len(paths))
	}
	for _, path := range paths {
		if unwanted.MatchString(path) {
			t.Errorf("a program of guard and redisstore links %s", path)
		}
	}
}
