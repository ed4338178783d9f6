package drivertest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/drivertest"
)

// mutants are bugs of kv, and for each a case that has to find it.
func mutants() []struct{ bug, foundBy string } {
	return []struct{ bug, foundBy string }{
		{"token is constant", "TokenGrowsOverHolders"},
		{"token without room for hand-overs", "TokenLeavesRoomForHandover"},
		{"token changes at Renew", "TokenStaysThroughRenew"},
		{"order forgotten at Release", "TokenGrowsOverHolders"},
		{"order forgotten at expiry", "TokenGrowsOverExpiry"},
		{"generation is dropped", "GenerationReachesToken"},
		{"bad generation is granted", "GenerationTooLargeIsRefused"},
		{"grant belongs to nobody", "GrantEchoesRequest"},
		{"Until counts from the reply", "UntilCountsFromSend"},
		{"Until stays at Renew", "RenewMovesUntil"},
		{"Renew does not extend", "RenewExtends"},
		{"Renew does not extend", "NobodyElseBeforeUntil"},
		{"retry promises more", "RepeatedAcquirePromisesNoMore"},
		{"retry is busy", "RepeatedAcquireIsTheSameGrant"},
		{"retry is a new grant", "ConcurrentRepeatedAcquireIsTheSameGrant"},
		{"holds are counted", "RepeatedAcquireIsTheSameGrant"},
		{"busy is another error", "BusyWhileHeld"},
		{"Acquire waits", "BusyWhileHeld"},
		{"check, then act", "ConcurrentAcquireHasOneWinner"},
		{"check, then act", "ConcurrentHoldersExcludeAndOrder"},
		{"Renew without owner", "RenewOfOtherOwnerIsLost"},
		{"Renew without token", "RenewOfOtherTokenIsLost"},
		{"refused Renew extends", "RenewOfOtherOwnerIsLost"},
		{"Release by key", "ReleaseOfOtherOwnerIsLost"},
		{"Release by key", "ExpiredHolderFreesNobodyElse"},
		{"Release by key", "RandomHistoryFollowsModel"},
		{"Release needs a token", "ReleaseWithoutTokenFrees"},
		{"Release of anything is nil", "ReleaseOfFreeKeyIsLost"},
		{"Release waits for expiry", "ReleaseFreesAtOnce"},
		{"expired hold stays", "AcquireAfterExpiry"},
		{"expired hold is renewed", "RenewAfterExpiryIsLost"},
		{"keys are folded", "KeysStayDifferent"},
		{"keys are trimmed", "KeysStayDifferent"},
		{"keys are cut", "LongKeysStayDifferent"},
		{"one lock for all keys", "KeysAreIndependent"},
		{"ended context is success", "EndedContextAcquire"},
		{"ended context is busy", "EndedContextAcquire"},
		{"wait ignores context", "WaitEndsWithContext"},
		{"wait hides busy", "WaitEndsWithDeadline"},
		{"wait misses expiry", "WaitEndsAtExpiry"},
		{"wait looks at the lease once", "WaitOutlastsRenewals"},
		{"wait leaves its place behind", "LastToLeaveLeavesNothing"},
		{"wait gets an old token", "WaitEndsAtRelease"},
		{"served wait says busy", "WaitIsServedOrLeft"},
		{"head takes the timer along", "LeavingHeadBlocksNobody"},
		{"Release wakes nobody", "ManyWaitsAllServed"},
		{"queue is a stack", "WaitsAreServedInOrder"},
		{"Acquire overtakes waits", "WaitsAreServedInOrder"},
		{"Holder may have expired", "HolderOfFreeKeyIsNobody"},
		{"Holder is who waits", "HolderIsNamed"},
		{"hazard without a fix", "CheckNamesWholeHazards"},
	}
}

const mutantEnv = "PAWL_DRIVERTEST_BUG"

func runKV(t *testing.T, bug string) {
	t.Helper()
	drivertest.RunLocker(t, drivertest.Harness[driver.Locker]{
		Open: func(*testing.T) func() driver.Locker {
			s := newKV(bug)
			return func() driver.Locker { return s }
		},
		TTL:    time.Second,
		Bubble: synctest.Test,
	})
}

func TestRunLocker_PassesGoodStore(t *testing.T) { runKV(t, "") }

// TestMutant is the child process of TestRunLocker_FindsBugs.
func TestMutant(t *testing.T) {
	bug := os.Getenv(mutantEnv)
	if bug != "" { // else this is not the child process
		runKV(t, bug)
	}
}

// Each bug fails the suite in a process of its own, in the case that is made
// for it.
func TestRunLocker_FindsBugs(t *testing.T) {
	for _, m := range mutants() {
		t.Run(m.bug+"/"+m.foundBy, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestMutant$/^Locker$/^"+m.foundBy+"$", "-rapid.nofailfile", "-test.timeout=50s")
			child.Env = append(os.Environ(), mutantEnv+"="+m.bug)
			out, err := child.CombinedOutput()
			if want := "--- FAIL: TestMutant/Locker/" + m.foundBy + " "; err == nil || !strings.Contains(string(out), want) {
				t.Errorf("suite against the bug: got %v and this output, want exit status 1 and %q\n%s", err, want, out)
			}
		})
	}
}
