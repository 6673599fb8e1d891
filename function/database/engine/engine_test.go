// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// words of an engine that no other package of the function may use.
var words = regexp.MustCompile(`(?i)postgres|patroni|pgbackrest|pgbouncer|pg_|psql|\bwal\b|wal_|write-ahead|mysql|innodb|gtid|group replication`)

// exceptions by file, each with its reason.
var exceptions = map[string]string{
	"database/engines.go":  "the table of engines",
	"settings/settings.go": "the names of the project's own images",
}

// TestWords finds what knows a certain engine outside of its package, comments included.
func TestWords(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if d.IsDir() && (name == "database/engine/postgres" || name == "database/engine/mysql" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if _, excepted := exceptions[name]; excepted || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if word := words.FindString(line); word != "" {
				t.Errorf("function/%s:%d names %q: move it behind an interface of function/database/engine", name, i+1, word)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
