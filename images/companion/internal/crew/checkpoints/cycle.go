// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/crew"
)

// begin the cycle: make its folder, in which all pods write. The folder above has to be there, because it is the volume.
func (f Folder) begin() error {
	if f.Cycle == 0 {
		return nil
	}
	if err := os.Mkdir(f.Dir, 0o770); errors.Is(err, fs.ErrExist) { //nolint:gosec // Pods share the folder by its group.
		return nil
	} else if err != nil {
		return err
	}
	// The mask of the process may be another. Some volumes have no modes; there a pod that cannot write says so itself.
	_ = os.Chmod(f.Dir, fs.ModeSetgid|0o770)
	return nil
}

// Tidy deletes what an earlier coordinator was about to remove, and the folders of cycles before the former one: without that, a volume
// would be full after some cycles. It touches nothing else, and no cycle after the present one.
func (f Folder) Tidy() error { return errors.Join(f.tidyRemoved(), f.tidyCycles()) }

func (f Folder) tidyRemoved() error {
	root, err := os.OpenRoot(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // The folder of a cycle is not made yet.
	}
	if err != nil {
		return f.explain("read", err)
	}
	defer func() { _ = root.Close() }()
	if err := f.sweep(root); err != nil {
		return f.explain("remove checkpoints from", err)
	}
	return nil
}

func (f Folder) tidyCycles() error {
	if f.Cycle == 0 {
		return nil
	}
	above := filepath.Dir(f.Dir)
	entries, err := os.ReadDir(above)
	if err != nil {
		return fmt.Errorf("cannot list earlier checkpoints: %w", err)
	}
	var errs []error
	for _, e := range entries {
		number, ours := strings.CutPrefix(e.Name(), crew.CyclePrefix(f.Training))
		n, err := strconv.Atoi(number)
		if !ours || err != nil || strconv.Itoa(n) != number || !e.IsDir() || n == f.Former || n < 1 || n >= f.Cycle {
			continue
		}
		if err := os.RemoveAll(filepath.Join(above, e.Name())); err != nil {
			errs = append(errs, fmt.Errorf("cannot delete earlier checkpoints: %w", err))
		}
	}
	return errors.Join(errs...)
}
