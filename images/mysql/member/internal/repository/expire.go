// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/continuity"
)

// Retention says which backups stay. The last one of the stanza always stays.
type Retention struct {
	// Days that can be restored: the last backup that is older stays as well, which the first of these days begins with. 0: Full counts.
	Days int
	// Full is how many backups are kept. With 0 Days, at least 1.
	Full int
	// Former stanzas, whose backups expire as well. Such a stanza is removed once the current one has all that the retention promises: its backups
	// at once, and its logs a day later, which a restore that runs may need.
	Former []string
}

const day = 24 * time.Hour

// kept is how many of a stanza's backups stay, of the times when they ended, oldest first.
func (k Retention) kept(ended []time.Time, now time.Time) int {
	if k.Days == 0 {
		return min(len(ended), max(1, k.Full))
	}
	from := now.Add(-time.Duration(k.Days) * day)
	for i := len(ended) - 1; i >= 0; i-- {
		if ended[i].Before(from) {
			return len(ended) - i
		}
	}
	return len(ended)
}

// covers reports whether a stanza's backups alone are all that is promised.
func (k Retention) covers(ended []time.Time, now time.Time) bool {
	if k.Days == 0 {
		return len(ended) >= max(1, k.Full)
	}
	return len(ended) > 0 && ended[0].Before(now.Add(-time.Duration(k.Days)*day))
}

// Expire backups, and the binary logs that no restore needs any more. The error is ErrBusy when the bucket could not give back the room of
// copies that do not count any more, because a restore or another backup uses the copies: the next time does it.
func (r *Repository) Expire(ctx context.Context, keep Retention, now time.Time) error {
	stanza, err := r.stanza()
	if err != nil {
		return err
	}
	all, err := r.complete(ctx, stanza)
	if err != nil {
		return err
	}
	covered := keep.covers(times(all), now)
	problems := []error{r.expire(ctx, stanza, all, keep.kept(times(all), now), now)}
	for _, former := range keep.Former {
		if former == stanza || !steps.MatchString(former) {
			continue
		}
		problems = append(problems, r.expireFormer(ctx, former, keep, covered, now))
	}
	return errors.Join(problems...)
}

// complete manifests of a stanza: as long as one of them cannot be understood, it is not known what it needs, and nothing expires.
func (r *Repository) complete(ctx context.Context, stanza string) ([]manifest, error) {
	all, damaged, err := r.manifests(ctx, stanza)
	if err = cmp.Or(err, damaged); err != nil {
		return nil, fmt.Errorf("nothing of the stanza %s expires: %w", stanza, err)
	}
	return all, nil
}

func times(all []manifest) []time.Time {
	out := make([]time.Time, len(all))
	for i, m := range all {
		out[i] = m.Ended
	}
	return out
}

func (r *Repository) expireFormer(ctx context.Context, former string, keep Retention, covered bool, now time.Time) error {
	all, err := r.complete(ctx, former)
	if err != nil {
		return err
	}
	if !covered {
		return r.expire(ctx, former, all, keep.kept(times(all), now), now)
	}
	// Manifests are first: from then on nothing of it counts, and no restore of it begins. One that runs locks the copies, and then needs logs.
	if err := r.expire(ctx, former, all, 0, now); err != nil {
		return err
	}
	since, err := r.ended(ctx, former, now)
	if err != nil || now.Sub(since) < day {
		return err
	}
	for _, prefix := range []string{r.key("log", former) + "/", r.key("copy", former) + "/"} {
		if err := r.objects.removeAll(ctx, prefix); err != nil {
			return fmt.Errorf("cannot remove the stanza %s: %w", former, err)
		}
	}
	return r.objects.remove(ctx, r.key("stanza", former+".json"))
}

// ended since when a stanza has no backups, as is written down in the object that names its group; zero when there is no such stanza.
func (r *Repository) ended(ctx context.Context, stanza string, now time.Time) (time.Time, error) {
	var has struct {
		owner

		Ended time.Time `json:"ended,omitzero"`
	}
	key := r.key("stanza", stanza+".json")
	found, err := r.objects.readJSON(ctx, key, &has)
	if err == nil && found && has.Ended.IsZero() {
		has.Ended = now.UTC()
		err = r.objects.writeJSON(ctx, key, has)
	}
	return has.Ended, err
}

// expire all but the last backups of a stanza.
func (r *Repository) expire(ctx context.Context, stanza string, all []manifest, kept int, now time.Time) error {
	drop, all := all[:len(all)-kept], all[len(all)-kept:]
	for _, m := range drop {
		if err := r.objects.remove(ctx, r.manifest(stanza, m.Label)); err != nil {
			return err
		}
	}
	if len(all) > 0 {
		if err := r.expireLogs(ctx, stanza, all, now); err != nil {
			return err
		}
	}
	if err := r.expireCopies(ctx, stanza, all, now); err != nil {
		return fmt.Errorf("cannot expire the copies of the stanza %s: %w", stanza, err)
	}
	return nil
}

// unfinished is how long a snapshot may be without its manifest, which is written right after it. To save it may take many hours, which do not count.
const unfinished = time.Hour

// expireCopies forgets snapshots without a manifest: of backups that expired, and of ones that did not come to their end.
func (r *Repository) expireCopies(ctx context.Context, stanza string, kept []manifest, now time.Time) error {
	c := r.copies(stanza)
	there, err := r.objects.list(ctx, r.key("copy", stanza)+"/config", false)
	if err != nil || len(there) == 0 {
		return err
	}
	all, err := c.list(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, s := range all {
		if !slices.ContainsFunc(kept, func(m manifest) bool { return m.Snapshot == s.ID }) && s.ended().Before(now.Add(-unfinished)) {
			ids = append(ids, s.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return c.forget(ctx, ids)
}

// needed reports whether a restore of one of the backups may need a log: not if all of them have what is in it, or follow on another history than
// the one that it is of, which ended before.
func needed(l Log, backups []manifest) bool {
	return slices.ContainsFunc(backups, func(m manifest) bool {
		return !m.Set.Contains(l.Set) && (!m.Began.After(l.Last) || continuity.Same(m.Until(), l.Until()))
	})
}

// expireLogs removes logs that no backup needs, an index at a time. The ones that a server may be adding to stay. One that begins to add to an
// index at this very moment learns of its loss when it reads what the archive has, and adds the log again.
func (r *Repository) expireLogs(ctx context.Context, stanza string, backups []manifest, now time.Time) error {
	folders, err := r.objects.list(ctx, r.key("log", stanza)+"/", true)
	if err != nil {
		return err
	}
	s, err := r.sealed(ctx, true)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		indexes, err := r.indexes(ctx, folder)
		if err != nil {
			return err
		}
		for i, e := range indexes {
			// A server that copied data began its logs again, with another base name: each has a last index.
			last := i == len(indexes)-1 || base(indexes[i+1].key) != base(e.key)
			if last && e.written.After(now.Add(-day)) {
				continue
			}
			logs, err := r.index(ctx, e)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(logs, func(l Log) bool { return needed(l, backups) }) {
				continue
			}
			if err := each(logs, func(_ int, l Log) error { return r.objects.remove(ctx, folder.key+l.File+s.suffix()) }); err != nil {
				return err
			}
			// The index is last: what is still listed after an interruption is removed the next time. So it is when a server has just added to it.
			same, err := r.objects.same(ctx, e)
			if err == nil && same {
				err = r.objects.remove(ctx, e.key)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// base name of the logs in an index.
func base(index string) string { return index[:strings.LastIndexByte(index, '-')+1] }
