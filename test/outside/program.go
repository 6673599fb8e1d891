// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program returns the path of a program of a tool of hack/tools.
func program(tb testing.TB, tool, name string) string {
	tb.Helper()
	variable := "CAPSTAN_PROGRAM_" + strings.ToUpper(strings.ReplaceAll(tool, "-", "_"))
	path := filepath.Join(os.Getenv(variable), name)
	if _, err := os.Stat(path); !filepath.IsAbs(path) || err != nil {
		tb.Fatalf("cannot find program %q of tool %q: $%s is %q: run `make integration`, or for one test: "+
			"eval \"$(go -C hack run ./programs versitygw mlflow moto etcd kubernetes prometheus alertmanager mysql)\"", name, tool, variable, os.Getenv(variable))
	}
	return path
}

// repository is the nearest directory, from the working directory upwards, that contains Capstan.
func repository(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatalf("cannot find the repository: %v", err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "crossplane.yaml")); err == nil {
			return dir
		}
	}
	tb.Fatal("cannot find the repository: run the test inside it")
	return ""
}

// environment is the test's own, without variables that configure a developer's clients or servers.
func environment(more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		mine := false
		for _, prefix := range []string{"MLFLOW_", "_MLFLOW_", "AWS_", "VGW_", "ROOT_", "ADMIN_", "PYTHON", "S3_", "INITIAL_"} {
			mine = mine || strings.HasPrefix(v, prefix)
		}
		if !mine {
			env = append(env, v)
		}
	}
	return append(env, more...)
}
