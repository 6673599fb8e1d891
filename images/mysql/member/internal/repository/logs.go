// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// perIndex is how many logs one index is of: about an hour of them.
const perIndex = 64

// names of servers and of binary logs: what is before the number, and the number.
var (
	servers = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	numbers = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_-]{0,99})\.([0-9]{1,18})$`)
)

// readIndex is an index that was read, and the tag that it had.
type readIndex struct {
	tag  string
	logs []Log
}

// folder of a log, its own name there, and the one of its index.
func (r *Repository) keys(l Log, s *seal) (log, index string, err error) {
	stanza, err := r.stanza()
	if err != nil {
		return "", "", err
	}
	m := numbers.FindStringSubmatch(l.File)
	if m == nil || !servers.MatchString(l.Server) {
		return "", "", fmt.Errorf("cannot keep the binary log %q of the server %q: these are no names of such", l.File, l.Server)
	}
	n, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return "", "", fmt.Errorf("cannot keep the binary log %q: %w", l.File, err)
	}
	dir := r.key("log", stanza, l.Server)
	return dir + "/" + l.File + s.suffix(), fmt.Sprintf("%s/index/%s-%d.json", dir, m[1], n/perIndex), nil
}

// Logs of the stanza, by server and name. What was read once is not requested again as long as it stays the same.
func (r *Repository) Logs(ctx context.Context) ([]Log, error) {
	stanza, err := r.stanza()
	if err != nil {
		return nil, err
	}
	return r.logs(ctx, stanza)
}

func (r *Repository) logs(ctx context.Context, stanza string) ([]Log, error) {
	prefix := r.key("log", stanza) + "/"
	folders, err := r.objects.list(ctx, prefix, true)
	if err != nil {
		return nil, err
	}
	var indexes []entry
	for _, f := range folders {
		some, err := r.indexes(ctx, f)
		if err != nil {
			return nil, err
		}
		indexes = append(indexes, some...)
	}
	found := make([][]Log, len(indexes))
	if err := each(indexes, func(i int, e entry) (err error) {
		found[i], err = r.index(ctx, e)
		return err
	}); err != nil {
		return nil, err
	}
	r.forget(prefix, indexes)
	all := slices.Concat(found...)
	slices.SortFunc(all, func(a, b Log) int { return cmp.Or(cmp.Compare(a.Server, b.Server), compareFiles(a.File, b.File)) })
	return all, nil
}

// indexes of a server's logs, oldest first.
func (r *Repository) indexes(ctx context.Context, folder entry) ([]entry, error) {
	all, err := r.objects.list(ctx, folder.key+"index/", false)
	slices.SortFunc(all, func(a, b entry) int { return compareFiles(a.key, b.key) })
	return all, err
}

// compareFiles by their numbers, which may get more digits.
func compareFiles(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// index of logs, which is read unless it is known.
func (r *Repository) index(ctx context.Context, e entry) ([]Log, error) {
	r.mu.Lock()
	known, ok := r.read[e.key]
	r.mu.Unlock()
	if ok && known.tag == e.tag && e.tag != "" {
		return known.logs, nil
	}
	var logs []Log
	if _, err := r.objects.readJSON(ctx, e.key, &logs); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.read[e.key] = readIndex{e.tag, logs}
	r.mu.Unlock()
	return logs, nil
}

// forget indexes below a prefix that are there no more.
func (r *Repository) forget(prefix string, there []entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.read {
		if strings.HasPrefix(key, prefix) && !slices.ContainsFunc(there, func(e entry) bool { return e.key == key }) {
			delete(r.read, key)
		}
	}
}

// SaveLog brings the file at a path to the stanza, once: it is no error when it is there with the same content, and ErrDiffers when it
// is there with another. Only one program may save logs of a server at a time.
func (r *Repository) SaveLog(ctx context.Context, file string, l Log) error {
	s, err := r.sealed(ctx, true)
	if err != nil {
		return err
	}
	key, index, err := r.keys(l, s)
	if err != nil {
		return err
	}
	var logs []Log
	if _, err := r.objects.readJSON(ctx, index, &logs); err != nil {
		return err
	}
	if l.Size, l.SHA256, err = digest(file); err != nil {
		return fmt.Errorf("cannot read the binary log %s: %w", l.File, err)
	}
	i, listed := slices.BinarySearchFunc(logs, l, func(a, b Log) int { return compareFiles(a.File, b.File) })
	if listed {
		if logs[i].SHA256 != l.SHA256 {
			return fmt.Errorf("cannot keep the binary log %s of the server %s: %w", l.File, l.Server, ErrDiffers)
		}
		return nil
	}
	if err := r.upload(ctx, s, file, key, l); err != nil {
		return err
	}
	return r.objects.writeJSON(ctx, index, slices.Insert(logs, i, l))
}

// upload a log. One that is there already and not listed is of a program that was killed: it stays if it is the same.
func (r *Repository) upload(ctx context.Context, s *seal, file, key string, l Log) error {
	return r.scratch(func(tmp *os.File) error {
		from, err := os.Open(filepath.Clean(file))
		if err != nil {
			return err
		}
		err = s.write(tmp, from)
		if err := errors.Join(err, from.Close()); err != nil {
			return fmt.Errorf("cannot prepare the binary log %s: %w", l.File, err)
		}
		if _, err := tmp.Seek(0, io.SeekStart); err != nil {
			return err
		}
		written, err := r.objects.put(ctx, key, tmp, true)
		if err != nil || written {
			return err
		}
		sum := sha256.New()
		if err := r.download(ctx, s, key, sum); err != nil {
			return err
		}
		if hex.EncodeToString(sum.Sum(nil)) != l.SHA256 {
			return fmt.Errorf("cannot keep the binary log %s of the server %s: %w", l.File, l.Server, ErrDiffers)
		}
		return nil
	})
}

// scratch gives a file that has no name, so that nothing is left of it when the program is killed.
func (r *Repository) scratch(use func(*os.File) error) error {
	if r.place.Scratch != "" {
		if err := os.MkdirAll(r.place.Scratch, 0o700); err != nil {
			return fmt.Errorf("cannot prepare a folder for files: %w", err)
		}
	}
	tmp, err := os.CreateTemp(r.place.Scratch, "log-")
	if err != nil {
		return fmt.Errorf("cannot prepare a file: %w", err)
	}
	if err = os.Remove(tmp.Name()); err == nil {
		err = use(tmp)
	}
	return errors.Join(err, tmp.Close())
}

func (r *Repository) download(ctx context.Context, s *seal, key string, to io.Writer) error {
	body, found, err := r.objects.get(ctx, key)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("cannot read %s in %s: %w", key, r.objects.place, ErrNotFound)
	}
	if err := errors.Join(s.read(to, body), body.Close()); err != nil {
		return fmt.Errorf("cannot read %s in %s: %w", key, r.objects.place, plain(err))
	}
	return nil
}

func digest(file string) (int64, string, error) {
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return 0, "", err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return n, hex.EncodeToString(sum.Sum(nil)), errors.Join(err, f.Close())
}

// LoadLog writes a log to a file. The error is ErrDamaged when the content is not the one that was saved; then there is no such file.
func (r *Repository) LoadLog(ctx context.Context, l Log, file string) error {
	s, err := r.sealed(ctx, false)
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("cannot load the binary log %s: %w", l.File, ErrNotFound)
	}
	key, _, err := r.keys(l, s)
	if err != nil {
		return err
	}
	to, err := os.OpenFile(filepath.Clean(file), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot load the binary log %s: %w", l.File, err)
	}
	sum := sha256.New()
	err = errors.Join(r.download(ctx, s, key, io.MultiWriter(to, sum)), to.Close())
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != l.SHA256 {
		err = fmt.Errorf("cannot load the binary log %s of the server %s: %w", l.File, l.Server, ErrDamaged)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}
