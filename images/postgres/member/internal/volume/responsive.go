// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"os"
	"path/filepath"
	"time"
)

// A Responder tells whether a volume answers at all.
type Responder struct {
	// Dir is a folder on the volume.
	Dir string

	pending chan struct{}
}

// Answers tells whether a write reaches the volume within a time. One that is full answers. It must not be called at several
// places at a time.
func (r *Responder) Answers(within time.Duration) bool {
	if r.pending == nil {
		done := make(chan struct{})
		r.pending = done
		go func() {
			defer close(done)
			path := filepath.Join(r.Dir, ".capstan-probe")
			f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
			if err != nil {
				return
			}
			_, _ = f.WriteString("probe\n")
			_ = f.Sync()
			_ = f.Close()
			_ = os.Remove(path)
		}()
	}
	select {
	case <-r.pending:
		r.pending = nil
		return true
	case <-time.After(within):
		return false // the one under way goes on, and the next call waits for it
	}
}
