// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// labels of backups are when they ended.
const labels = "20060102-150405"

// A manifest is the object that makes a snapshot a backup.
type manifest struct {
	Backup

	// Snapshot of restic.
	Snapshot string `json:"snapshot"`
}

// Stanzas that have backups, by name.
func (r *Repository) Stanzas(ctx context.Context) ([]string, error) {
	folders, err := r.objects.list(ctx, r.key("backup")+"/", true)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, f := range folders {
		if strings.HasSuffix(f.key, "/") {
			all = append(all, path.Base(f.key))
		}
	}
	slices.Sort(all)
	return all, nil
}

// Backups of the stanza, oldest first. One whose object cannot be understood is left out, see Unreadable; the error is ErrDamaged when there is
// no other.
func (r *Repository) Backups(ctx context.Context) ([]Backup, error) {
	all, damaged, err := r.manifests(ctx, r.place.Stanza)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.unreadable = damaged
	r.mu.Unlock()
	backups := make([]Backup, len(all))
	for i, m := range all {
		backups[i] = m.Backup
	}
	return backups, nil
}

// Unreadable says which backups were left out by the last Backups; nil if none was.
func (r *Repository) Unreadable() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unreadable
}

// manifests of a stanza, or of all, oldest first, and what is wrong with others. It is an error when there are only others.
func (r *Repository) manifests(ctx context.Context, stanza string) (all []manifest, damaged, err error) {
	found, err := r.objects.list(ctx, r.key("backup", stanza)+"/", false)
	if err != nil {
		return nil, nil, err
	}
	all = make([]manifest, len(found))
	problems := make([]error, len(found))
	if err := each(found, func(i int, e entry) error {
		var err error
		all[i], err = r.known(ctx, e)
		if errors.Is(err, ErrDamaged) {
			all[i], problems[i], err = manifest{}, fmt.Errorf("a backup is left out: %w; bring its object back, or delete it to give the backup up", err), nil
		}
		return err
	}); err != nil {
		return nil, nil, err
	}
	damaged = errors.Join(problems...)
	// One that was deleted meanwhile has no name.
	all = slices.DeleteFunc(all, func(m manifest) bool { return m.Label == "" })
	if len(all) == 0 && damaged != nil {
		return nil, damaged, damaged
	}
	slices.SortFunc(all, func(a, b manifest) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Label, b.Label)) })
	return all, damaged, nil
}

// known manifest, which is read once: it is never written again.
func (r *Repository) known(ctx context.Context, e entry) (manifest, error) {
	r.mu.Lock()
	m, ok := r.taken[e]
	r.mu.Unlock()
	if ok {
		return m, nil
	}
	found, err := r.objects.readJSON(ctx, e.key, &m)
	if err == nil && found && e.tag != "" {
		r.mu.Lock()
		r.taken[e] = m
		r.mu.Unlock()
	}
	return m, err
}

func (r *Repository) manifest(stanza, label string) string {
	return r.key("backup", stanza, label+".json")
}

// Save the folder of data as a backup of the stanza, which it claims for the group of the backup if it is unclaimed. The error is ErrForeign when
// the data has nothing of the group that the stanza is for. It counts once all of it is in the bucket.
func (r *Repository) Save(ctx context.Context, data string, b Backup) (Backup, error) {
	if err := r.claimFor(ctx, b); err != nil {
		return Backup{}, err
	}
	b.Stanza = r.place.Stanza
	c := r.copies(b.Stanza)
	snapshot, err := c.save(ctx, data)
	if err != nil {
		return Backup{}, fmt.Errorf("cannot bring the backup to %s: %w", r.objects.place, err)
	}
	now := time.Now().UTC()
	if b.Ended.IsZero() {
		b.Ended = now
	}
	b.Label, b.Size, b.Added = now.Format(labels)+"-"+snapshot.ID[:8], snapshot.Size, snapshot.Added
	return b, r.objects.writeJSON(ctx, r.manifest(b.Stanza, b.Label), manifest{b, snapshot.ID})
}

// Load the backup with a label into a folder of data, which must be empty or not exist. What is in the bucket is checked as it is read:
// the error is ErrDamaged when some of it is not what was saved.
func (r *Repository) Load(ctx context.Context, label, data string) error {
	stanza, err := r.stanza()
	if err != nil {
		return err
	}
	if !steps.MatchString(label) {
		return fmt.Errorf("cannot load the backup %q: %w", label, ErrNotFound)
	}
	there, err := os.ReadDir(data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot load the backup %s: %w", label, err)
	}
	if len(there) > 0 {
		return fmt.Errorf("cannot load the backup %s: the folder %s is not empty", label, data)
	}
	var m manifest
	found, err := r.objects.readJSON(ctx, r.manifest(stanza, label), &m)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("cannot load the backup %s of the stanza %s: %w", label, stanza, ErrNotFound)
	}
	if err := r.copies(stanza).load(ctx, m.Snapshot, data); err != nil {
		return fmt.Errorf("cannot load the backup %s from %s: %w", label, r.objects.place, err)
	}
	return nil
}
