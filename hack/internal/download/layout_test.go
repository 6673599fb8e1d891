// SPDX-License-Identifier: Apache-2.0

package download

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLayOut(t *testing.T) {
	root := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(root)))
	defer server.Close()
	for tool, programs := range map[string]map[string]string{
		"archived": {"program": "built archived"},
		"plain":    {"one": "built one", "two": "built two"},
	} {
		t.Run(tool, func(t *testing.T) {
			built := t.TempDir()
			for name, data := range programs {
				if err := os.WriteFile(filepath.Join(built, name), []byte(data), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			request := Request{Tool: tool, Version: "v1.2.3", Arch: "amd64"}
			pins, err := newDownloader(t, server, ModeAuto, nil).LayOut(request, built, root)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), tool)
			if err := newDownloader(t, server, ModeDownload, pins).Fetch(t.Context(), request, dir); err != nil {
				t.Fatal(err)
			}
			got := tree(t, dir)
			delete(got, originFile)
			if diff := cmp.Diff(programs, got); diff != "" {
				t.Errorf("a mirror of built programs has other programs: -built, +downloaded:\n%s", diff)
			}
			if err := os.Remove(filepath.Join(built, "one")); err == nil {
				if _, err := newDownloader(t, server, ModeAuto, nil).LayOut(request, built, root); err == nil {
					t.Error("half a tool is laid out")
				}
			}
		})
	}
}
