// SPDX-License-Identifier: Apache-2.0

package krew

import (
	"archive/zip"
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/hack/internal/image"
)

// TestArchive: the same files are the same bytes, also for Windows, whose program has another name.
func TestArchive(t *testing.T) {
	files := []image.File{{Path: Program("windows/arm64"), Mode: 0o755, Content: []byte("program")}, {Path: "/licenses/capstan", Mode: 0o644, Content: []byte("text")}}
	var both [2]bytes.Buffer
	for i := range both {
		if err := Pack(&both[i], "windows/arm64", time.Unix(1767323045, 0), files); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(both[0].Bytes(), both[1].Bytes()) {
		t.Error("the same files are other bytes")
	}
	r, err := zip.NewReader(bytes.NewReader(both[0].Bytes()), int64(both[0].Len()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.File {
		got = append(got, fmt.Sprintf("%s %s %d", f.Name, f.Mode(), f.Modified.Unix()))
	}
	if diff := cmp.Diff([]string{"kubectl-capstan.exe -rwxr-xr-x 1767323045", "licenses/capstan -rw-r--r-- 1767323045"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
