// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/hack/internal/debian"
)

const catalogueComment = `# Written by "go -C hack run ./postgres-image lock". What the image postgres has.
`

// catalogue is the content of catalogueFile; apis/members/catalogue has the types that read it.
type catalogue struct {
	// Lock is the sha256 of packages.lock that the rest was read from.
	Lock string `json:"lock"`
	// Tools maps patroni, pgbackrest, pgbouncer and postgres-exporter to their versions.
	Tools map[string]string `json:"tools"`
	// Majors are sorted, oldest first.
	Majors []major `json:"majors"`
}

type major struct {
	Major string `json:"major"`
	// Version as PostgreSQL itself shows it, as in 17.12.
	Version string `json:"version"`
	// Extensions maps names for CREATE EXTENSION to their default versions.
	Extensions map[string]string `json:"extensions"`
}

func (c catalogue) format() ([]byte, error) {
	data, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the catalogue: %w", err)
	}
	return append([]byte(catalogueComment), data...), nil
}

// catalogue reads what the packages of PostgreSQL have, and makes sure that every architecture has the same.
func (b *Builder) catalogue(ctx context.Context, lock debian.Lock) (catalogue, error) {
	var wanted []debian.Package
	for _, p := range lock.Packages {
		if group(p) != base {
			wanted = append(wanted, p)
		}
	}
	store := b.store()
	var count atomic.Int64
	far := func() string { return fmt.Sprintf("%d of %d packages", count.Load(), len(wanted)) }
	fetch := func() error { return store.Fetch(ctx, lock, wanted, &count) }
	if err := b.Step("download packages of PostgreSQL", far, fetch); err != nil {
		return catalogue{}, err
	}
	architectures := request().Architectures
	all := make([]catalogue, len(architectures))
	for i, architecture := range architectures {
		c, err := describe(store, lock.For(architecture))
		if err != nil {
			return catalogue{}, err
		}
		all[i] = c
		if diff := cmp.Diff(all[0], c); diff != "" {
			return catalogue{}, fmt.Errorf("cannot lock packages while architectures differ, -%s, +%s: try again in a day\n%s",
				architectures[0], architecture, diff)
		}
	}
	return all[0], nil
}

// tools are the packages whose versions decide what a member can do.
func tools() map[string]string {
	return map[string]string{
		"patroni": "patroni", "pgbackrest": "pgbackrest", "pgbouncer": "pgbouncer", "prometheus-postgres-exporter": "postgres-exporter",
	}
}

func describe(store *debian.Store, packages []debian.Package) (catalogue, error) {
	c := catalogue{Tools: map[string]string{}}
	for _, p := range packages {
		if tool, ok := tools()[p.Name]; ok {
			c.Tools[tool] = upstream(p.Version)
		}
	}
	for _, name := range Majors() {
		m := major{Major: name, Extensions: map[string]string{}}
		for _, p := range packages {
			if group(p) != name {
				continue
			}
			if p.Name == "postgresql-"+name {
				m.Version = upstream(p.Version)
			}
			if err := debian.Walk(store.Path(p), m.extension); err != nil {
				return catalogue{}, fmt.Errorf("cannot read the extensions of %s: %w", p.Name, err)
			}
		}
		if m.Version == "" || len(m.Extensions) == 0 {
			return catalogue{}, fmt.Errorf("cannot find PostgreSQL %s among the packages", name)
		}
		c.Majors = append(c.Majors, m)
	}
	return c, nil
}

// upstream is a version of Debian without epoch and revision.
func upstream(version string) string {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	version, _, _ = strings.Cut(version, "-")
	return version
}

var (
	controlFile    = regexp.MustCompile(`^usr/share/postgresql/\d+/extension/[^/]+\.control$`)
	defaultVersion = regexp.MustCompile(`^\s*default_version\s*=\s*'([^']+)'`)
)

// extension adds what a control file describes.
func (m major) extension(hdr *tar.Header, content io.Reader) error {
	if !controlFile.MatchString(hdr.Name) {
		return nil
	}
	name := strings.TrimSuffix(path.Base(hdr.Name), ".control")
	for lines := bufio.NewScanner(content); lines.Scan(); {
		if found := defaultVersion.FindStringSubmatch(lines.Text()); found != nil {
			m.Extensions[name] = found[1]
			return nil
		}
	}
	return errors.New(hdr.Name + " names no default version")
}
