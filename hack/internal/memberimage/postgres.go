// SPDX-License-Identifier: Apache-2.0

package memberimage

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/capstan-dev/capstan/hack/internal/debian"
)

// Postgres is the image of a PostgreSQL Database's members. Its versions are those that members run, and 15 for upgrades from it.
func Postgres() Image {
	image := Image{
		Name: "postgres", Server: "PostgreSQL", Versions: []string{"15", "17", "18"},
		Env: env(
			// Nothing but volumes can be written to.
			"PYTHONDONTWRITEBYTECODE=1",
			// At night people do not remember where it is.
			"PATRONICTL_CONFIG_FILE=/etc/capstan/config/patroni.yaml",
		),
		account: "postgres",
		socket:  "run/postgresql",
		request: debian.Request{
			Architectures: []string{"amd64", "arm64"},
			// Security updates of the stable suites are in archives of their own; sid needs none.
			Suites: []string{"sid", "trixie", "trixie-security", "bookworm", "bookworm-security"},
			Names:  common("patroni", "pgbackrest", "pgbouncer", "prometheus-postgres-exporter"),
			Without: []string{
				// Perl, and what only installs and configures packages on a machine.
				"adduser", "debconf", "init-system-helpers", "perl", "postgresql-client-common", "postgresql-common", "ssl-cert", "ucf",
				// The compiler of JIT is larger than the rest together.
				"libllvm14", "libllvm19",
				// C.UTF-8 is part of libc-bin, and databases use it, the builtin provider or ICU.
				"locales",
				// Patroni keeps its state in Kubernetes.
				"python3-consul",
			},
		},
		version: func(p debian.Package) string {
			if m := ofMajor.FindStringSubmatch(p.Name); m != nil {
				return m[1]
			}
			return ""
		},
		server: func(version string) string { return "postgresql-" + version },
		tools: map[string]string{
			"patroni": "patroni", "pgbackrest": "pgbackrest", "pgbouncer": "pgbouncer", "prometheus-postgres-exporter": "postgres-exporter",
		},
		extension: extension,
		omitted: []string{
			`etc/(pgbouncer|pgbackrest\.conf)`,
			// Without the compiler for JIT its library cannot be loaded, and queries that ask for it fail. PostgreSQL does without a missing library.
			`usr/lib/postgresql/[0-9]+/lib/(bitcode|pgxs|llvmjit\.so|llvmjit_types\.bc)`,
			`usr/lib/python3[^/]*/(ensurepip|idlelib|lib2to3|pydoc_data|test|tkinter|turtledemo|unittest/test)`,
			`usr/share/(python3/runtime\.d|postgresql/[0-9]+/man)`,
			`var/lib/(pgbackrest|postgresql)`,
		},
		// A node may have huge pages, and a pod that may not use them is killed at the first access. What initdb runs reads this file.
		edits: []edit{{`^usr/share/postgresql/[0-9]+/postgresql\.conf\.sample$`, "#huge_pages = try", "huge_pages = off"}},
	}
	for _, version := range image.Versions {
		image.request.Names = append(image.request.Names, image.server(version))
		if version == "15" {
			continue // no Database stays on it
		}
		for _, extension := range []string{"cron", "partman", "pgaudit", "pgvector", "repack", "wal2json"} {
			image.request.Names = append(image.request.Names, image.server(version)+"-"+extension)
		}
	}
	// The newest clients talk to every server.
	newest := image.Versions[len(image.Versions)-1]
	for _, client := range []string{"pg_dump", "pg_isready", "pg_restore", "psql"} {
		image.files = append(image.files, made{path: "usr/bin/" + client, link: path.Join("../lib/postgresql", newest, "bin", client)})
	}
	return image
}

var (
	ofMajor        = regexp.MustCompile(`^postgresql-(?:client-)?(\d+)(?:-|$)`)
	controlFile    = regexp.MustCompile(`^usr/share/postgresql/\d+/extension/[^/]+\.control$`)
	defaultVersion = regexp.MustCompile(`^\s*default_version\s*=\s*'([^']+)'`)
)

// extension reads what a control file describes.
func extension(hdr *tar.Header, content io.Reader) (name, version string, err error) {
	if !controlFile.MatchString(hdr.Name) {
		return "", "", nil
	}
	for lines := bufio.NewScanner(content); lines.Scan(); {
		if found := defaultVersion.FindStringSubmatch(lines.Text()); found != nil {
			return strings.TrimSuffix(path.Base(hdr.Name), ".control"), found[1], nil
		}
	}
	return "", "", errors.New(hdr.Name + " names no default version")
}
