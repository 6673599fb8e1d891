// SPDX-License-Identifier: Apache-2.0

// Package postgres makes the image of a database's members from packages of Debian, without Docker and without running anything
// of what is in them.
package postgres

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/hack/internal/debian"
)

// Majors of PostgreSQL in the image, oldest first: those that members run, and 15 for upgrades from it.
func Majors() []string { return []string{"15", "17", "18"} }

// Member is where the image has the program that it runs.
const Member = "/usr/local/bin/capstan-member"

// The users in the image. The group of both is the one of postgres: the exporter reads sockets and files of the group.
const (
	postgresID = 999
	exporterID = 998
)

// User runs the image: postgres, by numbers, because Kubernetes cannot know that a name is not root.
const User = "999:999"

// Env of the image. Home is where psql and pgBackRest look for files of the user, and where a volume is mounted.
func Env() []string {
	return []string{
		"PATH=/usr/local/bin:/usr/bin:/usr/sbin", "HOME=/data", "LANG=C.UTF-8",
		// Nothing but volumes can be written to.
		"PYTHONDONTWRITEBYTECODE=1",
		// At night people do not remember where it is.
		"PATRONICTL_CONFIG_FILE=/etc/capstan/config/patroni.yaml",
	}
}

// request is what the lock is made for. Security updates of the stable suites are in archives of their own; sid needs none.
func request() debian.Request {
	r := debian.Request{
		Architectures: []string{"amd64", "arm64"},
		Suites:        []string{"sid", "trixie", "trixie-security", "bookworm", "bookworm-security"},
		Names: []string{
			"base-files", "busybox", "ca-certificates", "dash", "libc-bin", "openssl", "tzdata",
			"patroni", "pgbackrest", "pgbouncer", "prometheus-postgres-exporter",
		},
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
	}
	for _, major := range Majors() {
		r.Names = append(r.Names, "postgresql-"+major)
		if major == "15" {
			continue // no version stays on it
		}
		for _, extension := range []string{"cron", "partman", "pgaudit", "pgvector"} {
			r.Names = append(r.Names, "postgresql-"+major+"-"+extension)
		}
	}
	return r
}

// omitted matches the paths that no container needs. Copyright notices stay: they must go with the binaries.
var omitted = regexp.MustCompile(`^(` + strings.Join([]string{
	`boot|home|media|mnt|opt|root|srv|usr/games|usr/include|usr/local|usr/src|var/(backups|cache|local|log|mail|opt|spool)`,
	`etc/(bash_completion\.d|cron\..*|default|dpkg|init\.d|issue.*|logrotate\.d|motd|pgbouncer|profile\.d|skel|systemd|update-motd\.d|pgbackrest\.conf)`,
	`usr/lib/(systemd|sysusers\.d|tmpfiles\.d|cryptsetup|lintian|postgresql/[0-9]+/lib/(bitcode|pgxs))`,
	`usr/lib/python3[^/]*/(ensurepip|idlelib|lib2to3|pydoc_data|test|tkinter|turtledemo|unittest/test)`,
	`usr/share/(bash-completion|binfmts|bug|debhelper|doc-base|info|initramfs-tools|lintian|locale|man|menu|pixmaps|applications|python3/runtime\.d|postgresql/[0-9]+/man)`,
	`var/lib/(dpkg|pgbackrest|postgresql)`,
	`usr/share/doc/[^/]+/[^c].*|usr/share/doc/[^/]+/c[^o][^/]*`,
}, "|") + `)(/|$)`)

// A made file is one that an installation would have made, or that only this image has: a folder or a link or a file with content,
// as its mode says.
type made struct {
	path    string
	mode    fs.FileMode
	owner   int
	link    string
	content string
}

// merged are the folders whose content lies below usr since Debian 12; packages from before may still have files there.
func merged() []string { return []string{"bin", "lib", "lib64", "sbin"} }

// frame comes before everything else of the lowest layer.
func frame() []made {
	files := append(make([]made, 0, 128), []made{
		{path: "usr", mode: fs.ModeDir | 0o755},
		{path: "data", mode: fs.ModeDir | 0o700, owner: postgresID},
		{path: "dev", mode: fs.ModeDir | 0o755},
		{path: "etc", mode: fs.ModeDir | 0o755},
		{path: "proc", mode: fs.ModeDir | 0o755},
		{path: "run", mode: fs.ModeDir | 0o755},
		{path: "sys", mode: fs.ModeDir | 0o755},
		{path: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{path: "var", mode: fs.ModeDir | 0o755},
		{path: "var/run", link: "/run"},
		{path: "run/postgresql", mode: fs.ModeDir | 0o775, owner: postgresID},
		{path: "etc/passwd", mode: 0o644, content: fmt.Sprintf(`root:x:0:0:root:/root:/bin/sh
postgres:x:%[1]d:%[1]d:PostgreSQL:/data:/bin/sh
exporter:x:%[2]d:%[1]d:Prometheus exporter:/nonexistent:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/bin/sh
`, postgresID, exporterID)},
		{path: "etc/group", mode: 0o644, content: fmt.Sprintf("root:x:0:\npostgres:x:%d:\nnogroup:x:65534:\n", postgresID)},
		{path: "etc/nsswitch.conf", mode: 0o644, content: "passwd: files\ngroup: files\nhosts: files dns\n"},
		{path: "usr/bin/awk", link: "mawk"},
	}...)
	for _, dir := range merged() {
		files = append(files, made{path: "usr/" + dir, mode: fs.ModeDir | 0o755}, made{path: dir, link: "usr/" + dir})
	}
	// The newest clients talk to every server.
	majors := Majors()
	for _, client := range []string{"pg_dump", "pg_isready", "pg_restore", "psql"} {
		files = append(files, made{path: "usr/bin/" + client, link: path.Join("../lib/postgresql", majors[len(majors)-1], "bin", client)})
	}
	for tool := range strings.FieldsSeq(busyboxTools) {
		files = append(files, made{path: "usr/bin/" + tool, link: "busybox"})
	}
	return files
}

// busyboxTools are what people and scripts look for in a container.
const busyboxTools = `basename cat chmod chown cmp cp cut date dd df diff dirname du env expr false find free fuser grep gunzip gzip
head hostname id kill less ln ls md5sum mkdir mktemp more mv nc nproc nslookup od paste pgrep pidof ping pkill printenv printf ps pwd
readlink realpath rm rmdir sed seq sha256sum sleep sort stat stty sync tail tar tee test timeout top touch tr true uname uniq
uptime vi watch wc wget which whoami xargs yes zcat [`

var ofMajor = regexp.MustCompile(`^postgresql-(?:client-)?(\d+)(?:-|$)`)

// group names the layer that has a package: base, or a major version. A change of one leaves the others as they are, on nodes
// as in caches.
func group(p debian.Package) string {
	if m := ofMajor.FindStringSubmatch(p.Name); m != nil && slices.Contains(Majors(), m[1]) {
		return m[1]
	}
	return base
}

const base = "base"
