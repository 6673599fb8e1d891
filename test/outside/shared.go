// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Main runs the tests of a package with shared servers, and stops the servers:
//
//	func TestMain(m *testing.M) { os.Exit(outside.Main(m)) }
func Main(m *testing.M) int {
	binary.mu.Lock()
	binary.main = true
	binary.mu.Unlock()
	defer binary.clean()
	return m.Run()
}

// SharedS3 is S3, started once for all tests of a package. Tests must not stop it, and use their own buckets.
func SharedS3(tb testing.TB) *S3Server {
	tb.Helper()
	s := *share(tb, "s3", S3)
	s.tb = tb
	return &s
}

// SharedAWS is AWS, started once for all tests of a package.
func SharedAWS(tb testing.TB) *S3Server {
	tb.Helper()
	s := *share(tb, "aws", AWS)
	s.tb = tb
	return &s
}

// SharedMLflow is MLflow, started once for all tests of a package. Tests must not stop it, and use their own models.
func SharedMLflow(tb testing.TB) *MLflowServer {
	tb.Helper()
	s := *share(tb, "mlflow", MLflow)
	s.tb = tb
	return &s
}

// SharedAPIServer is APIServer, started once for all tests of a package. Tests use their own namespaces.
func SharedAPIServer(tb testing.TB) *rest.Config {
	tb.Helper()
	return rest.CopyConfig(share(tb, "apiserver", APIServer))
}

// binary holds everything that lives as long as the test binary.
var binary = &lifetime{servers: map[string]any{}}

type lifetime struct {
	mu      sync.Mutex
	main    bool
	servers map[string]any
	cleanup []func()
}

func (l *lifetime) clean() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fn := range slices.Backward(l.cleanup) {
		fn()
	}
	l.cleanup, l.servers = nil, map[string]any{}
}

// share starts a server for the first test that needs it. If that fails, this test fails, and the next one tries again.
func share[T any](tb testing.TB, name string, start func(testing.TB) T) T {
	tb.Helper()
	binary.mu.Lock()
	defer binary.mu.Unlock()
	if !binary.main {
		tb.Fatal("cannot share a server: the package's TestMain has to call outside.Main, which stops it")
	}
	if s, ok := binary.servers[name].(T); ok {
		return s
	}
	s := start(&sharing{TB: tb})
	binary.servers[name] = s
	return s
}

// sharing is a test whose clean-up runs at the end of the binary.
type sharing struct{ testing.TB }

func (*sharing) Cleanup(fn func()) { binary.cleanup = append(binary.cleanup, fn) }

// Errorf reports errors of the clean-up, when the test that they belong to is already over.
func (*sharing) Errorf(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (s *sharing) TempDir() string {
	s.Helper()
	dir, err := os.MkdirTemp("", "capstan-outside-")
	if err != nil {
		s.Fatalf("cannot make a folder: %v", err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
