// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dumpfile"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// tocFile of a directory.
const tocFile = "toc.dat"

// A found dump, as it is in the bucket.
type found struct {
	pgmember.Dump

	// at is its place in spec.from.dump.databases.
	at     int
	bucket *objectstore.Bucket
	header dumpfile.Header
	// objects are its one file, or all files of a directory.
	objects []objectstore.Object
	// entries of its table of contents, unless it is a script.
	entries []dumpfile.Entry
}

// field of the spec, and its value.
func (f *found) field() string {
	return fmt.Sprintf("spec.from.dump.databases[%d].path: %q", f.at, f.Path)
}

func (f *found) bytes() (n int64) {
	for _, o := range f.objects {
		n += o.Size
	}
	return n
}

// look at dumps, and at the databases that they fill, and find what stands in the way.
func (d *dumps) look(ctx context.Context, open []int) ([]found, []string, error) {
	where, err := pgbackrest.ReadRepository(d.secret)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.from.dump.connectionSecretRef: %w", err)
	}
	bucket, err := objectstore.OpenBucket(where)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.from.dump.connectionSecretRef: %w", err)
	}
	var all []found
	var findings []string
	for _, i := range open {
		f := found{Dump: d.config.Databases[i], at: i, bucket: bucket}
		fs, err := f.look(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.field(), err)
		}
		if len(fs) == 0 {
			if fs, err = f.fits(ctx, d.major); err != nil {
				return nil, nil, err
			}
		}
		for _, finding := range fs {
			findings = append(findings, f.field()+": "+finding)
		}
		all = append(all, f)
	}
	room, err := d.room(all)
	if err != nil {
		return nil, nil, err
	}
	return all, append(findings, room...), nil
}

// look at the dump. Its format is what its content says.
func (f *found) look(ctx context.Context) ([]string, error) {
	if f.Format != pgmember.DumpDirectory {
		o, head, there, err := f.bucket.Head(ctx, f.Path, dumpfile.HeadSize)
		if err != nil {
			return nil, err
		}
		if there {
			return f.lookAtFile(ctx, o, head)
		}
	}
	if f.Format == "" || f.Format == pgmember.DumpDirectory {
		list, err := f.bucket.List(ctx, f.Path+"/")
		if err != nil {
			return nil, err
		}
		if fs, there, err := f.lookAtFolder(ctx, list); there || err != nil {
			return fs, err
		}
	}
	what := "file"
	if f.Format == pgmember.DumpDirectory {
		what = "folder with a " + tocFile
	}
	return []string{fmt.Sprintf("the bucket has no such %s: put the dump there, or make another Database with its path", what)}, nil
}

func (f *found) lookAtFile(ctx context.Context, o objectstore.Object, head []byte) ([]string, error) {
	var err error
	if f.header, err = dumpfile.Look(head); err != nil {
		return []string{err.Error()}, nil //nolint:nilerr // It is what was found.
	}
	if f.Format != "" && f.Format != f.header.Format {
		return []string{fmt.Sprintf("its format is %s, and the spec has %s: put such a dump there, or make another Database without format", f.header.Format, f.Format)}, nil
	}
	f.objects = []objectstore.Object{o}
	if f.header.Format == pgmember.DumpPlain {
		return nil, nil
	}
	return f.contents(ctx, o)
}

// lookAtFolder of a dump in the format Directory. It reports whether there is one.
func (f *found) lookAtFolder(ctx context.Context, list []objectstore.Object) ([]string, bool, error) {
	f.header.Format = pgmember.DumpDirectory
	names := map[string]bool{}
	toc := -1
	for _, o := range list {
		name := strings.TrimPrefix(o.Key, f.Path+"/")
		if !dumpfile.Kept(name) {
			continue
		}
		if name == tocFile {
			toc = len(f.objects)
		}
		names[name] = true
		f.objects = append(f.objects, o)
	}
	if toc < 0 {
		return nil, false, nil
	}
	fs, err := f.contents(ctx, f.objects[toc])
	for _, e := range f.entries {
		if e.File != "" && !slices.ContainsFunc([]string{"", ".gz", ".lz4", ".zst"}, func(suffix string) bool { return names[e.File+suffix] }) {
			return append(fs, fmt.Sprintf("the file %s is missing in it: copy the whole folder", e.File)), true, err
		}
	}
	return fs, true, err
}

// contents of an archive. Nothing else of it is read now.
func (f *found) contents(ctx context.Context, o objectstore.Object) ([]string, error) {
	from := f.bucket.Stream(ctx, o)
	defer func() { _ = from.Close() }()
	header, entries, err := dumpfile.TOC(from, f.header.Format)
	if err != nil {
		return []string{err.Error()}, nil
	}
	f.header, f.entries = header, entries
	return nil, nil
}

// fits reports what keeps a dump from its database.
func (f *found) fits(ctx context.Context, target int) ([]string, error) {
	var fs []string
	add := func(format string, args ...any) { fs = append(fs, fmt.Sprintf(format, args...)) }
	server, program := f.header.Majors()
	switch {
	case server > target:
		add("a server of version %d was dumped, and this Database has %d: make a Database with spec.version %d or later", server, target, server)
	case program > target:
		add("the pg_dump of version %d wrote it, and this Database has %d: dump with the pg_dump of version %d, or make a Database with spec.version %d or later", program, target, max(server, target), program)
	}
	var wanted []extension
	for _, e := range f.entries {
		if e.Kind == kindExtension && e.Tag != "plpgsql" {
			wanted = append(wanted, extension{Name: e.Tag})
		}
	}
	here := database{Name: f.Name}
	if err := within(ctx, f.Name, func(conn *pgx.Conn) error { return here.here(ctx, conn, wanted, true) }); err != nil {
		return nil, err
	}
	if len(here.Extensions) > 0 {
		add("this image has no extensions %s: drop them in the database and dump it again, or ask the platform team for an image that has them", importing.Some(here.Extensions))
	}
	if len(here.Uncreated) > 0 {
		add("only a superuser makes the extensions %s: list them in spec.extensions", importing.Some(here.Uncreated))
	}
	if here.Mighty != "" {
		add("%s", here.Mighty)
	}
	if here.OccupiedBy != "" {
		add("database %q has %s already: only an empty one is filled: make another Database", f.Name, here.OccupiedBy)
	}
	return fs, nil
}

// room on the volume: data takes at least what a dump does, which is mostly compressed, with indexes and write-ahead log a fifth more. A
// directory is kept there itself while it is restored.
func (d *dumps) room(all []found) ([]string, error) {
	u, err := volume.Measure(pgmember.FolderVolume)
	if err != nil {
		return nil, err
	}
	var bytes, largest int64
	for _, f := range all {
		bytes += f.bytes()
		if f.header.Format == pgmember.DumpDirectory {
			largest = max(largest, f.bytes())
		}
	}
	if need := bytes + bytes/5 + largest; need > u.Free {
		return []string{fmt.Sprintf("spec.storage: the dumps have %s and need room for at least %s, and the volume of the leader has room for %s: raise spec.storage by %d GiB or more",
			importing.Size(bytes), importing.Size(need), importing.Size(u.Free), (need-u.Free)>>30+1)}, nil
	}
	return nil, nil
}

// nameOf a file in a folder.
func nameOf(o objectstore.Object) string { return path.Base(o.Key) }
