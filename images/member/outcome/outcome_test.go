// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPrint(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	var out strings.Builder
	if err := Print(&out, file, Backup{Label: "one"}); err != nil || !strings.HasPrefix(out.String(), `{"label":"one","type":""`) {
		t.Errorf("printed %q, %v", out.String(), err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file that the kubelet did not make was made")
	}
	if err := os.WriteFile(file, []byte("what a former container left, which is longer than the next"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := Die(&out, file, errors.New("one\ntwo "+strings.Repeat("ü", most))); code != 1 {
		t.Errorf("it ended with %d", code)
	}
	raw, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(raw), "one two ü") || len(raw) > most || len(raw) < most-2 || strings.ToValidUTF8(string(raw), "?") != string(raw) {
		t.Errorf("left %d bytes: %.20q, %v", len(raw), raw, err)
	}
}
