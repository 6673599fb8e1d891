// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// manifest is the file that a checkpoint has when it is complete.
const manifest = "manifest.json"

// A part of a checkpoint, which one rank writes. The manifest is the part of the group.
type part struct {
	state

	Pad []byte `json:"pad,omitempty"`
}

// checkpoint is written by all ranks. Rank 0 writes the manifest once the others have written their parts.
func (r *rank) checkpoint(s state) error {
	o := r.options
	// The attempt is in the name: a late rank of an earlier attempt does not write into this one.
	dir := filepath.Join(o.Checkpoints, fmt.Sprintf("attempt-%d-step-%08d", o.Attempt, s.Step))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("cannot make a checkpoint: %w", err)
	}
	raw, err := json.Marshal(part{state: s, Pad: bytes.Repeat([]byte{'x'}, o.Pad)})
	if err != nil {
		return fmt.Errorf("cannot make a checkpoint: %w", err)
	}
	if err := write(filepath.Join(dir, partName(o.Rank)), raw); err != nil {
		return fmt.Errorf("cannot write a checkpoint: %w", err)
	}
	if _, err := r.group.add(contribution{Rank: o.Rank, Step: s.Step}); err != nil {
		return err
	}
	if o.Rank > 0 {
		return nil
	}
	if raw, err = json.Marshal(s); err != nil {
		return fmt.Errorf("cannot make a checkpoint: %w", err)
	}
	if err := write(filepath.Join(dir, manifest), raw); err != nil {
		return fmt.Errorf("cannot write a checkpoint: %w", err)
	}
	if err := r.report(progress{Step: s.Step, Of: o.Steps, Checkpoint: dir}); err != nil {
		return err
	}
	return tidy(o.Checkpoints, o.Keep)
}

func partName(rank int) string { return "rank-" + strconv.Itoa(rank) + ".json" }

// load the state to begin with.
func load(o Options) (state, error) {
	if o.Resume == "" {
		return state{World: o.World}, nil
	}
	var s state
	var own part
	for name, into := range map[string]any{manifest: &s, partName(o.Rank): &own} {
		raw, err := os.ReadFile(filepath.Clean(filepath.Join(o.Resume, name)))
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil {
			return s, fmt.Errorf("cannot resume: %w", err)
		}
	}
	if s != own.state {
		return s, fmt.Errorf("cannot resume from %s: the part of rank %d has step %d, and the manifest step %d", o.Resume, o.Rank, own.Step, s.Step)
	}
	if s.World != o.World {
		return s, fmt.Errorf("cannot resume from %s: it is of %d ranks, and there are %d", o.Resume, s.World, o.World)
	}
	return s, nil
}

// tidy removes all complete checkpoints but the newest.
func tidy(folder string, keep int) error {
	found, err := filepath.Glob(filepath.Join(folder, "attempt-*-step-*", manifest))
	if err != nil {
		return fmt.Errorf("cannot list checkpoints: %w", err)
	}
	step := func(path string) string {
		_, name, _ := strings.Cut(filepath.Base(filepath.Dir(path)), "-step-")
		return name
	}
	sort.Slice(found, func(i, j int) bool { return step(found[i]) < step(found[j]) })
	for _, path := range found[:max(0, len(found)-max(1, keep))] {
		// The manifest goes first: what is half removed is not complete.
		if err := errors.Join(os.Remove(path), os.RemoveAll(filepath.Dir(path))); err != nil {
			return fmt.Errorf("cannot remove an old checkpoint: %w", err)
		}
	}
	return nil
}

// write a file as a whole or not at all, so that it outlasts the loss of power.
func write(path string, content []byte) error {
	next := path + ".next"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640) //nolint:gosec // Ranks of other pods read it, by their group.
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
