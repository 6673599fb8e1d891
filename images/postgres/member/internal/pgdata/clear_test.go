// SPDX-License-Identifier: Apache-2.0

package pgdata

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/capstan-dev/capstan/images/member/volume"
)

func TestClear(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		files   []string
		removed bool
	}{
		"Nothing": {"A folder that is not there is clear.", nil, true},
		"Rest":    {"Without a control file it is no data.", []string{"PG_VERSION", "base/1/112", "global/1262"}, true},
		"Data":    {"Data is never removed.", []string{"PG_VERSION", "global/pg_control"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "pgdata")
			for _, f := range tc.files {
				path := filepath.Join(data, f)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := Clear(data)
			empty, eerr := volume.Empty(data)
			if eerr != nil {
				t.Fatal(eerr)
			}
			if empty != tc.removed || (err == nil) != tc.removed {
				t.Errorf("%s: empty %t, error %v", tc.reason, empty, err)
			}
		})
	}
}
