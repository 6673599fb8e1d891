// SPDX-License-Identifier: Apache-2.0

// Package memberimage makes the images of a database's members from packages of Debian, without Docker and without running anything
// of what is in them.
package memberimage

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/hack/internal/debian"
)

// Member is where the images have the program that they run.
const Member = "/usr/local/bin/capstan-member"

// An Image describes an image of members. Its layers are the base and one for each version of the server.
type Image struct {
	// Name of the image, of its folder below images, and of its catalogue.
	Name string
	// Server is what people call the database server. An image without one has no versions and no catalogue.
	Server string
	// Versions of the server, oldest first.
	Versions []string
	// Env is what the image sets in the environment.
	Env []string

	// account is the name of the user that runs the image, and of its group.
	account string
	// request is what the lock is made for.
	request debian.Request
	// version is what version of the server a package is a part of; empty is none.
	version func(debian.Package) string
	// server names the package that has the server of a version.
	server func(version string) string
	// tools maps packages whose versions decide what a member can do to their names in the catalogue.
	tools map[string]string
	// extension returns the name and the version of the extension that a file of a package describes; nil when the server has none.
	extension func(*tar.Header, io.Reader) (name, version string, err error)
	// omitted are patterns of paths that its containers do not need, beyond those that no container needs.
	omitted []string
	// edits of files that packages have.
	edits []edit
	// socket is the folder of the server's socket.
	socket string
	// files that no package has.
	files []made
	// programs are those that tests run without a container.
	programs []program
}

// A program can run outside of a container, with the loader and the libraries of the image.
type program struct {
	// path below the root of the image.
	path string
	// args come after all others, and name the folders of the image's files: %[1]s is the root of the image.
	args []string
}

// An edit replaces a text in files whose paths match. Without that text the image is not made.
type edit struct{ files, from, to string }

// Images lists the images of members.
func Images() []Image { return []Image{Postgres(), MySQL()} }

// Named returns an image by its name.
func Named(name string) (Image, error) {
	var names []string
	for _, image := range append(Images(), PyTorch()) {
		if image.Name == name {
			return image, nil
		}
		names = append(names, image.Name)
	}
	return Image{}, fmt.Errorf("cannot find an image %q: there is %s", name, strings.Join(names, ", "))
}

// The users in an image. The group of both is the server's: the exporter reads sockets and files of the group.
const (
	serverID   = 999
	exporterID = 998
)

// User runs an image, by numbers, because Kubernetes cannot know that a name is not root.
const User = "999:999"

// env is the environment of every image. Home is where clients look for files of the user, and where a volume is mounted.
func env(more ...string) []string {
	return append([]string{"PATH=/usr/local/bin:/usr/bin:/usr/sbin", "HOME=/data", "LANG=C.UTF-8"}, more...)
}

// common are the packages of every image.
func common(more ...string) []string {
	return append([]string{"base-files", "busybox", "ca-certificates", "dash", "libc-bin", "openssl", "tzdata"}, more...)
}

// Copyright notices stay: they must go with the binaries.
var needless = []string{
	`boot|home|media|mnt|opt|root|srv|usr/games|usr/include|usr/local|usr/src|var/(backups|cache|local|log|mail|opt|spool)`,
	`etc/(bash_completion\.d|cron\..*|default|dpkg|init\.d|issue.*|logrotate\.d|motd|profile\.d|skel|systemd|update-motd\.d)`,
	`usr/lib/(systemd|sysusers\.d|tmpfiles\.d|cryptsetup|lintian)`,
	`usr/share/(bash-completion|binfmts|bug|debhelper|doc-base|info|initramfs-tools|lintian|locale|man|menu|pixmaps|applications)`,
	`var/lib/dpkg`,
	`usr/share/doc/[^/]+/[^c].*|usr/share/doc/[^/]+/c[^o][^/]*`,
}

// omit matches the paths that the image's containers do not need.
func (i Image) omit() *regexp.Regexp {
	return regexp.MustCompile(`^(` + strings.Join(slices.Concat(needless, i.omitted), "|") + `)(/|$)`)
}

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
func (i Image) frame() []made {
	files := append(make([]made, 0, 128), []made{
		{path: "usr", mode: fs.ModeDir | 0o755},
		{path: "data", mode: fs.ModeDir | 0o700, owner: serverID},
		{path: "dev", mode: fs.ModeDir | 0o755},
		{path: "etc", mode: fs.ModeDir | 0o755},
		{path: "proc", mode: fs.ModeDir | 0o755},
		{path: "run", mode: fs.ModeDir | 0o755},
		{path: "sys", mode: fs.ModeDir | 0o755},
		{path: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{path: "var", mode: fs.ModeDir | 0o755},
		{path: "var/run", link: "/run"},
		{path: i.socket, mode: fs.ModeDir | 0o775, owner: serverID},
		{path: "etc/passwd", mode: 0o644, content: fmt.Sprintf(`root:x:0:0:root:/root:/bin/sh
%[3]s:x:%[1]d:%[1]d:%[4]s:/data:/bin/sh
exporter:x:%[2]d:%[1]d:Prometheus exporter:/nonexistent:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/bin/sh
`, serverID, exporterID, i.account, i.Server)},
		{path: "etc/group", mode: 0o644, content: fmt.Sprintf("root:x:0:\n%s:x:%d:\nnogroup:x:65534:\n", i.account, serverID)},
		{path: "etc/nsswitch.conf", mode: 0o644, content: "passwd: files\ngroup: files\nhosts: files dns\n"},
		{path: "usr/bin/awk", link: "mawk"},
	}...)
	if i.socket == "" {
		files = slices.DeleteFunc(files, func(f made) bool { return f.path == "" })
	}
	for _, dir := range merged() {
		files = append(files, made{path: "usr/" + dir, mode: fs.ModeDir | 0o755}, made{path: dir, link: "usr/" + dir})
	}
	files = append(files, i.files...)
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

// group names the layer that has a package: base, or a version of the server. A change of one leaves the others as they are, on nodes
// as in caches.
func (i Image) group(p debian.Package) string {
	if v := i.version(p); slices.Contains(i.Versions, v) {
		return v
	}
	return base
}

const base = "base"
