// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/vault"
)

// mostObject is how long an object may be, in bytes.
const mostObject = 1 << 20

// objects in a folder, which no name escapes.
type objects struct {
	root *os.Root
	// writing lets one object be written at a time.
	writing sync.Mutex
}

// open the folder of objects, which is made if it is not there.
func open(folder string) (*objects, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("cannot prepare the folder of objects: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder of objects: %w", err)
	}
	return &objects{root: root}, nil
}

func (o *objects) close() { _ = o.root.Close() }

func (o *objects) get(w http.ResponseWriter, r *http.Request) {
	raw, err := o.root.ReadFile(r.PathValue("key"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		vault.Refuse(w, http.StatusNotFound, errors.New("there is no such object"))
	case err != nil:
		vault.Refuse(w, http.StatusInternalServerError, err)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw)
	}
}

// put an object, as a whole or not at all.
func (o *objects) put(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostObject))
	if err != nil {
		vault.Refuse(w, http.StatusRequestEntityTooLarge, fmt.Errorf("cannot read the object: %w", err))
		return
	}
	if err := o.write(r.PathValue("key"), raw); err != nil {
		vault.Refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// write an object, so that it outlasts a host that is lost.
func (o *objects) write(key string, raw []byte) error {
	o.writing.Lock()
	defer o.writing.Unlock()
	if key == "" || strings.HasSuffix(key, durable.Next) {
		return errors.New("an object needs a name")
	}
	err := o.root.MkdirAll(path.Dir(key), 0o700)
	if err == nil {
		err = durable.WriteIn(o.root, key, raw)
	}
	if err != nil {
		return fmt.Errorf("cannot write the object: %w", err)
	}
	return nil
}
