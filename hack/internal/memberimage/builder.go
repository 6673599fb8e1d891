// SPDX-License-Identifier: Apache-2.0

package memberimage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/capstan-dev/capstan/hack/internal/debian"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// DriftVariable is the environment variable that lets a test build take the newest packages instead of the locked ones, once
// no server has one of them any more. A release is never built with it.
const DriftVariable = "CAPSTAN_DEBIAN_DRIFT"

// Lock is the file of the repository that names the packages of the image.
func (i Image) Lock() string { return "images/" + i.Name + "/packages.lock" }

// catalogue is the file of the repository that lists what the image has.
func (i Image) catalogue() string { return "apis/members/catalogue/" + i.Name + ".yaml" }

func (i Image) lockComment() string {
	return fmt.Sprintf("Written by \"go -C hack run ./member-image lock %[1]s\". The packages of Debian that the image %[1]s consists of.\n", i.Name)
}

// A Builder builds the layers below the program of an image, or finds them in its cache.
type Builder struct {
	*progress.Printer

	// Root is the folder of the repository.
	Root string
	// Cache is the project's folder below the user's cache folder.
	Cache string
	// Mirrors to download from.
	Mirrors debian.Mirrors
	// Snapshot is the address of an archive of what the mirrors have dropped; empty is none.
	Snapshot string
	// Drift allows other packages than the locked ones, once these are gone.
	Drift bool
}

// New returns a Builder for a repository that uses this machine's own mirrors and the user's cache.
func New(ctx context.Context, root string, p *progress.Printer) (*Builder, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("cannot find the user's cache folder: %w", err)
	}
	return &Builder{
		Printer: p, Root: root, Cache: filepath.Join(cache, "capstan"),
		Mirrors: debian.HostMirrors(ctx), Snapshot: strings.TrimSuffix(os.Getenv(debian.SnapshotVariable), "/"),
		Drift: os.Getenv(DriftVariable) == "true",
	}, nil
}

func (b *Builder) store() *debian.Store {
	return &debian.Store{Dir: filepath.Join(b.Cache, "debian"), Mirrors: b.Mirrors, Snapshot: b.Snapshot}
}

// Layers returns the layers for a platform as in linux/amd64, lowest first.
func (b *Builder) Layers(ctx context.Context, image Image, platform string) ([]v1.Layer, error) {
	architecture, ok := strings.CutPrefix(platform, "linux/")
	if !ok {
		return nil, fmt.Errorf("cannot build the image %s for %q: Debian is Linux", image.Name, platform)
	}
	lock, err := b.lock(image)
	if err != nil {
		return nil, err
	}
	layers, err := b.layers(ctx, image, lock, architecture)
	if !errors.Is(err, debian.ErrGone) {
		return layers, err
	}
	if !b.Drift {
		return nil, fmt.Errorf("%w\nrun `go -C hack run ./member-image lock %s`, and review what it changes", err, image.Name)
	}
	lock, resolveErr := b.drifted(ctx, image, lock, architecture)
	if resolveErr != nil {
		return nil, errors.Join(err, resolveErr)
	}
	return b.layers(ctx, image, lock, architecture)
}

func (b *Builder) lock(image Image) (debian.Lock, error) {
	data, err := os.ReadFile(filepath.Join(b.Root, image.Lock()))
	if err != nil {
		return debian.Lock{}, fmt.Errorf("cannot read the lock of packages: %w", err)
	}
	return debian.ParseLock(data)
}

// drifted resolves again and returns what differs from the lock. The answer holds for a day: resolving takes longer than all the rest.
func (b *Builder) drifted(ctx context.Context, image Image, locked debian.Lock, architecture string) (debian.Lock, error) {
	want := image.request
	want.Architectures = []string{architecture}
	locked.Packages = locked.For(architecture)
	sum := sha256.Sum256(locked.Format(""))
	file := filepath.Join(b.store().Dir, "drifted-"+hex.EncodeToString(sum[:6])+".lock")
	now, err := recent(file)
	if err != nil {
		err = b.Step("resolve packages that are gone", nil, func() (err error) {
			now, err = debian.Resolve(ctx, b.Mirrors, want)
			return err
		})
		if err != nil {
			return debian.Lock{}, err
		}
		if err := os.WriteFile(file, now.Format(""), 0o600); err != nil {
			return debian.Lock{}, fmt.Errorf("cannot keep what was resolved: %w", err)
		}
	}
	for _, line := range debian.Drift(locked, now) {
		b.Sayf("not as locked: %s", line)
	}
	return now, nil
}

// recent returns a lock that was written today.
func recent(file string) (debian.Lock, error) {
	info, err := os.Stat(file)
	if err != nil {
		return debian.Lock{}, err
	}
	if time.Since(info.ModTime()) > 24*time.Hour {
		return debian.Lock{}, errors.New("too old")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return debian.Lock{}, err
	}
	return debian.ParseLock(data)
}

// layers builds what the cache lacks, one layer on each core.
func (b *Builder) layers(ctx context.Context, image Image, lock debian.Lock, architecture string) ([]v1.Layer, error) {
	groups := map[string][]debian.Package{}
	for _, p := range lock.For(architecture) {
		groups[image.group(p)] = append(groups[image.group(p)], p)
	}
	if len(groups[base]) == 0 {
		return nil, fmt.Errorf("cannot build the image %s for %q: the lock has no packages for it", image.Name, architecture)
	}
	for _, version := range image.Versions {
		if len(groups[version]) == 0 {
			return nil, fmt.Errorf("cannot build the image %s for %q: no package has %s %s", image.Name, architecture, image.Server, version)
		}
	}
	dir := filepath.Join(b.Cache, "layers")
	names := append([]string{base}, image.Versions...)
	layers := make([]v1.Layer, len(names))
	var missing []int
	for i, name := range names {
		l, ok := cached(dir, image.key(name, groups[name]))
		if ok {
			layers[i] = l
		} else {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return layers, nil
	}
	store := b.store()
	var wanted []debian.Package
	for _, i := range missing {
		wanted = append(wanted, groups[names[i]]...)
	}
	var count atomic.Int64
	far := func() string { return fmt.Sprintf("%d of %d packages", count.Load(), len(wanted)) }
	fetch := func() error { return store.Fetch(ctx, lock, wanted, &count) }
	if err := b.Step("download packages of Debian for "+architecture, far, fetch); err != nil {
		return nil, err
	}
	build := func() error {
		workers, ctx := errgroup.WithContext(ctx)
		workers.SetLimit(2)
		for _, i := range missing {
			workers.Go(func() error {
				packages := groups[names[i]]
				l, err := keep(dir, image.key(names[i], packages), func(w io.Writer) error { return image.write(ctx, w, names[i], store, packages) })
				if err != nil {
					return fmt.Errorf("cannot build layer %q: %w", names[i], err)
				}
				layers[i] = l
				return nil
			})
		}
		return workers.Wait()
	}
	return layers, b.Step(fmt.Sprintf("build the layers of %s for %s", image.Name, architecture), nil, build)
}

// Lock resolves the packages again, and writes the lock and the catalogue of what is in them.
func (b *Builder) Lock(ctx context.Context, image Image) error {
	var lock debian.Lock
	err := b.Step("resolve packages of Debian", nil, func() (err error) {
		lock, err = debian.Resolve(ctx, b.Mirrors, image.request)
		return err
	})
	if err != nil {
		return err
	}
	old, err := b.lock(image)
	if err == nil {
		changes := debian.Drift(old, lock)
		for _, line := range changes {
			b.Sayf("%s", line)
		}
		if len(changes) == 0 && slices.Equal(sums(old), sums(lock)) {
			lock.Snapshots = old.Snapshots // nothing to review
		}
	}
	content := lock.Format(image.lockComment())
	files := map[string][]byte{image.Lock(): content}
	if image.Server != "" {
		catalogue, err := b.catalogue(ctx, image, lock)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		catalogue.Lock = hex.EncodeToString(sum[:])
		if files[image.catalogue()], err = catalogue.format(image); err != nil {
			return err
		}
	}
	for file, data := range files {
		path := filepath.Join(b.Root, file)
		if had, err := os.ReadFile(path); err == nil && bytes.Equal(had, data) {
			continue
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return fmt.Errorf("cannot write %s: %w", file, err)
		}
		b.Sayf("wrote %s", file)
	}
	return nil
}

func sums(l debian.Lock) []string {
	all := make([]string, len(l.Packages))
	for i, p := range l.Packages {
		all[i] = p.Architecture + p.SHA256
	}
	slices.Sort(all)
	return all
}
