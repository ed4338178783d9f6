package archtest_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// rule says what a package may use, directly or through internal packages. Patterns
// are those of path.Match; "x/..." is x and everything below.
type rule struct {
	pkg   string
	own   []string // packages of the module; internal ones are always allowed
	other []string // packages of other modules
}

// The directions run one way: fencing <- backends/driver <- guard <- middleware. A
// store knows the driver and its one client, a middleware knows guard and its one
// framework. So a service with Redis compiles no etcd and no GORM.
var rules = []rule{
	{pkg: "fencing"},
	{pkg: "backends/driver", own: []string{"fencing"}},
	{
		pkg: "backends/drivertest", own: []string{"fencing", "backends/driver"},
		other: []string{"github.com/google/go-cmp/...", "github.com/anishathalye/porcupine", "pgregory.net/rapid"},
	},
	{pkg: "backends/memstore", own: []string{"fencing", "backends/driver"}},
	{pkg: "backends/redisstore", own: []string{"fencing", "backends/driver"}, other: []string{"github.com/redis/go-redis/v9/..."}},
	{pkg: "backends/etcdstore", own: []string{"fencing", "backends/driver"}, other: []string{"go.etcd.io/etcd/..."}},
	{pkg: "backends/zkstore", own: []string{"fencing", "backends/driver"}, other: []string{"github.com/go-zookeeper/zk"}},
	{pkg: "backends/gormstore", own: []string{"fencing", "backends/driver"}, other: []string{"gorm.io/gorm/..."}},
	{pkg: "guard", own: []string{"fencing", "backends/driver"}, other: []string{"go.opentelemetry.io/otel/..."}},
	{
		pkg: "guard/guardtest", own: []string{"fencing", "backends/driver", "guard", "backends/memstore", "backends/drivertest"},
		other: []string{"go.opentelemetry.io/otel/..."},
	},
	{pkg: "middleware/httpguard", own: edge()},
	{pkg: "middleware/ginguard", own: edge("middleware/httpguard"), other: []string{"github.com/gin-gonic/gin/..."}},
	{pkg: "middleware/grpcguard", own: edge(), other: []string{"google.golang.org/grpc/...", "google.golang.org/protobuf/...", "google.golang.org/genproto/..."}},
	{pkg: "middleware/gormguard", own: edge("backends/gormstore"), other: []string{"gorm.io/gorm/..."}},
}

// edge is what every middleware may use.
func edge(more ...string) []string {
	return append([]string{"fencing", "backends/driver", "guard"}, more...)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
			return name == prefix || strings.HasPrefix(name, prefix+"/")
		}
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// violations are the imports that no rule allows.
func violations(g graph) []string {
	var found []string
	for _, name := range g.public() {
		at := slices.IndexFunc(rules, func(r rule) bool { return r.pkg == name })
		if at < 0 {
			found = append(found, name+" has no rule in "+"imports_test.go")
			continue
		}
		for _, via := range reach(g, name) {
			for _, target := range g[module+"/"+via].Imports {
				if !rules[at].allows(g, target) {
					found = append(found, fmt.Sprintf("%s must not import %s (in %s)", name, target, via))
				}
			}
		}
	}
	return found
}

func (r rule) allows(g graph, target string) bool {
	inside, isOwn := strings.CutPrefix(target, module+"/")
	switch {
	case isOwn && isInternal(inside):
		return inside != "internal/servertest" && inside != "internal/archtest"
	case isOwn:
		return matches(r.own, inside)
	case g[target].Standard || target == "C":
		return true
	}
	return matches(r.other, target)
}

// reach is name and the internal packages through which it could make a detour.
func reach(g graph, name string) []string {
	found := []string{name}
	for i := 0; i < len(found); i++ {
		for _, target := range g[module+"/"+found[i]].Imports {
			inside, isOwn := strings.CutPrefix(target, module+"/")
			if isOwn && isInternal(inside) && !slices.Contains(found, inside) {
				found = append(found, inside)
			}
		}
	}
	return found
}

func TestImports_RunOneWay(t *testing.T) {
	for _, v := range violations(packages(t)) {
		t.Error(v)
	}
}

// TestImports_SeesEachBreach proves that the test above can fail.
func TestImports_SeesEachBreach(t *testing.T) {
	std := pkg{ImportPath: "context", Standard: true}
	breaches := []struct{ name, from, to, through string }{
		{name: "LeafImportsUp", from: "fencing", to: module + "/guard"},
		{name: "LeafImportsOther", from: "fencing", to: "golang.org/x/sync/errgroup"},
		{name: "DriverImportsStore", from: "backends/driver", to: module + "/backends/memstore"},
		{name: "StoreImportsGuard", from: "backends/redisstore", to: module + "/guard"},
		{name: "StoreImportsStore", from: "backends/gormstore", to: module + "/backends/memstore"},
		{name: "StoreImportsOtherClient", from: "backends/gormstore", to: "github.com/redis/go-redis/v9"},
		{name: "GuardImportsStore", from: "guard", to: module + "/backends/redisstore"},
		{name: "GuardImportsMiddleware", from: "guard", to: module + "/middleware/gormguard"},
		{name: "MiddlewareImportsStore", from: "middleware/httpguard", to: module + "/backends/redisstore"},
		{name: "MiddlewareImportsOtherFramework", from: "middleware/httpguard", to: "github.com/gin-gonic/gin"},
		{name: "Detour", from: "backends/redisstore", to: module + "/guard", through: "internal/helper"},
		{name: "TestServers", from: "guard", to: module + "/internal/servertest"},
		{name: "NoRule", from: "backends/newstore", to: "context"},
	}
	for _, b := range breaches {
		t.Run(b.name, func(t *testing.T) {
			g := graph{"context": std, module + "/" + b.from: {Imports: []string{"context", b.to}}}
			if b.through != "" {
				g[module+"/"+b.from] = pkg{Imports: []string{module + "/" + b.through}}
				g[module+"/"+b.through] = pkg{Imports: []string{b.to}}
			}
			if got := violations(g); len(got) != 1 {
				t.Errorf("got %q, want one violation", got)
			}
		})
	}
}

// TestImports_KeepTestingOutOfProduction: a package that imports testing adds its
// flags to the program.
func TestImports_KeepTestingOutOfProduction(t *testing.T) {
	g := packages(t)
	forTests := []string{"backends/drivertest", "guard/guardtest"}
	for _, name := range g.public() {
		if !slices.Contains(forTests, name) && slices.Contains(g.closure(module+"/"+name), "testing") {
			t.Errorf("%s links the package testing", name)
		}
	}
}
