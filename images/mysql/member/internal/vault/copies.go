// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	host "github.com/capstan-dev/capstan/images/member/vault"
)

// listing is how restic wants lists, of its own protocol in its second version.
const listing = "application/vnd.x.restic.rest.v2"

const (
	// config of a repository of restic is one file. All others are of a kind, and named by the hash of their content.
	config = "config"
	// data are in folders by how their names begin, as in a repository that restic opens in a folder.
	data = "data"
)

var (
	kinds  = []string{data, "index", "keys", "locks", "snapshots"}
	hashes = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// keyOf a file of a repository.
func keyOf(repository, kind, name string) string {
	if kind == data {
		return path.Join(repository, kind, name[:2], name)
	}
	return path.Join(repository, kind, name)
}

// parsed path of a request: the key of a file, or the folder of a kind.
func parsed(at string) (key, folder string, ok bool) {
	if trimmed, isFolder := strings.CutSuffix(at, "/"); isFolder {
		return "", trimmed, slices.Contains(kinds, path.Base(trimmed)) && valid(trimmed)
	}
	above, name := path.Dir(at), path.Base(at)
	if name == config {
		return at, "", valid(at)
	}
	kind := path.Base(above)
	if !slices.Contains(kinds, kind) || !hashes.MatchString(name) || !valid(path.Dir(above)) {
		return "", "", false
	}
	return keyOf(path.Dir(above), kind, name), "", true
}

// answerCopies answers restic, by https://restic.readthedocs.io/en/stable/100_references.html#rest-backend.
func (t *tree) answerCopies(w http.ResponseWriter, r *http.Request) {
	at := r.PathValue("key")
	if r.Method == http.MethodPost && r.URL.Query().Get("create") == "true" {
		return // Folders are made with what is in them.
	}
	key, folder, ok := parsed(at)
	switch {
	case !ok:
		fail(w, errName)
	case folder != "" && r.Method == http.MethodGet:
		t.answerFiles(w, folder)
	case folder != "":
		host.Refuse(w, http.StatusMethodNotAllowed, errName)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		t.send(w, r, key)
	case r.Method == http.MethodPost:
		// Two that begin a repository at a time must not have two keys.
		if err := t.take(r, key, func(has string) bool { return has == "" || path.Base(key) != config }); errors.Is(err, errChanged) {
			host.Refuse(w, http.StatusForbidden, err)
		} else if err != nil {
			fail(w, err)
		}
	case r.Method == http.MethodDelete:
		if err := t.remove(key); err != nil {
			fail(w, err)
		}
	default:
		host.Refuse(w, http.StatusMethodNotAllowed, errName)
	}
}

// answerFiles of a kind.
func (t *tree) answerFiles(w http.ResponseWriter, folder string) {
	type file struct {
		Name string `json:"name"`
		Size int64  `json:"size"`
	}
	all := []file{}
	err := t.below(folder, func(key string, d fs.DirEntry) error {
		info, err := d.Info()
		if err == nil && hashes.MatchString(path.Base(key)) {
			all = append(all, file{path.Base(key), info.Size()})
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", listing)
	if raw, err := json.Marshal(all); err == nil {
		_, _ = w.Write(raw)
	}
}
