// SPDX-License-Identifier: Apache-2.0

// Package debian takes packages of Debian apart without installing them: it resolves dependencies with apt into a lock file,
// downloads what the lock file names, and reads what is in a package. No maintainer script ever runs.
package debian

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// snapshotLayout is how the snapshot service names a moment.
const snapshotLayout = "20060102T150405Z"

// A Lock names every package to the byte.
type Lock struct {
	// Snapshots maps each suite to a moment, in UTC, at which it had the packages that are locked of it. The snapshot service
	// serves them for it when no mirror does any more.
	Snapshots map[string]time.Time
	// Packages are sorted by architecture, then name.
	Packages []Package
}

// A Package is one file of an archive.
type Package struct {
	// Architecture it was resolved for, as Debian calls it: amd64 or arm64, also for a package that fits all.
	Architecture string
	// Suite that has it, as in trixie-security.
	Suite string
	Name  string
	// Version as Debian writes it, with epoch and revision.
	Version string
	// SHA256 of the file, in hexadecimal.
	SHA256 string
	// Path of the file below its archive, as in pool/main/p/patroni/patroni_4.1.5-2_all.deb.
	Path string
}

// Archive is the archive that holds the package's suite: debian or debian-security.
func (p Package) Archive() string { return archiveOf(p.Suite) }

func archiveOf(suite string) string {
	if strings.HasSuffix(suite, "-security") {
		return "debian-security"
	}
	return "debian"
}

// For returns the packages of an architecture.
func (l Lock) For(architecture string) []Package {
	var found []Package
	for _, p := range l.Packages {
		if p.Architecture == architecture {
			found = append(found, p)
		}
	}
	return found
}

// Format writes a lock, under a comment: a line for each suite's moment, then one for each package.
func (l Lock) Format(comment string) []byte {
	slices.SortFunc(l.Packages, func(a, b Package) int {
		return cmp.Or(strings.Compare(a.Architecture, b.Architecture), strings.Compare(a.Name, b.Name))
	})
	var out bytes.Buffer
	for line := range strings.Lines(comment) {
		out.WriteString("# " + line)
	}
	out.WriteString("\n")
	for _, suite := range slices.Sorted(maps.Keys(l.Snapshots)) {
		fmt.Fprintf(&out, "snapshot %s %s\n", suite, l.Snapshots[suite].UTC().Format(snapshotLayout))
	}
	table := tabwriter.NewWriter(&out, 0, 0, 1, ' ', 0)
	for _, p := range l.Packages {
		// A buffer takes everything.
		_, _ = fmt.Fprintln(table, strings.Join([]string{p.Architecture, p.Suite, p.Name, p.Version, p.SHA256, p.Path}, "\t"))
	}
	_ = table.Flush()
	return out.Bytes()
}

// ParseLock reads what Format has written.
func ParseLock(data []byte) (Lock, error) {
	l := Lock{Snapshots: map[string]time.Time{}}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		var err error
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
		case fields[0] == "snapshot" && len(fields) == 3:
			l.Snapshots[fields[1]], err = time.Parse(snapshotLayout, fields[2])
		case len(fields) == 6:
			p := Package{
				Architecture: fields[0], Suite: fields[1], Name: fields[2], Version: fields[3], SHA256: fields[4], Path: fields[5],
			}
			err = l.check(p)
			l.Packages = append(l.Packages, p)
		default:
			err = errors.New("want architecture, suite, name, version, sha256 and path")
		}
		if err != nil {
			return Lock{}, fmt.Errorf("cannot read line %d of the lock: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return Lock{}, fmt.Errorf("cannot read the lock: %w", err)
	}
	if len(l.Packages) == 0 {
		return Lock{}, errors.New("cannot read the lock: it names no package")
	}
	return l, nil
}

// check refuses what would make a file name or an address of something else.
func (l Lock) check(p Package) error {
	if _, ok := l.Snapshots[p.Suite]; !ok {
		return fmt.Errorf("no snapshot of suite %q comes before it", p.Suite)
	}
	if sum, err := hex.DecodeString(p.SHA256); err != nil || len(sum) != 32 {
		return fmt.Errorf("%q is no sha256", p.SHA256)
	}
	if path.Clean(p.Path) != p.Path || !strings.HasPrefix(p.Path, "pool/") || path.Ext(p.Path) != ".deb" {
		return fmt.Errorf("%q is no path of a package", p.Path)
	}
	return nil
}

// Drift describes, one line for each package, how two locks differ: "amd64 libc6 2.43-7 -> 2.43-8".
func Drift(before, after Lock) []string {
	versions := func(l Lock) map[string]string {
		m := map[string]string{}
		for _, p := range l.Packages {
			m[p.Architecture+" "+p.Name] = p.Version
		}
		return m
	}
	from, to := versions(before), versions(after)
	var lines []string
	for name, version := range from {
		switch now, ok := to[name]; {
		case !ok:
			lines = append(lines, fmt.Sprintf("%s %s -> gone", name, version))
		case now != version:
			lines = append(lines, fmt.Sprintf("%s %s -> %s", name, version, now))
		}
	}
	for name, version := range to {
		if _, ok := from[name]; !ok {
			lines = append(lines, fmt.Sprintf("%s new -> %s", name, version))
		}
	}
	slices.Sort(lines)
	return lines
}
