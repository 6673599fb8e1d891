// SPDX-License-Identifier: Apache-2.0

// Rules writes the recording rules for autoscalers into package/monitoring, from the table of model servers. With --check it
// writes nothing and fails when a file differs from what it would write.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/capstan-dev/capstan/provider/modelserver"
)

func main() {
	check := flag.Bool("check", false, "write nothing, fail when a generated file is not what it should be")
	dir := flag.String("dir", filepath.Join("package", "monitoring"), "folder to write into")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	files := map[string]string{
		modelserver.FileRules:          modelserver.RuleFile(),
		modelserver.FilePrometheusRule: modelserver.PrometheusRule(),
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		was, err := os.ReadFile(path) //nolint:gosec // The caller's own folder.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot read what was generated before: %w", err)
		}
		if bytes.Equal(was, []byte(files[name])) {
			continue
		}
		if check {
			return fmt.Errorf("%s is not what the table of model servers gives: run make generate", path)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // A folder of the repository.
			return fmt.Errorf("cannot make the folder of rules: %w", err)
		}
		if err := os.WriteFile(path, []byte(files[name]), 0o644); err != nil { //nolint:gosec // A file of the repository.
			return fmt.Errorf("cannot write rules: %w", err)
		}
	}
	return nil
}
