// SPDX-License-Identifier: Apache-2.0

package memberimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/capstan-dev/capstan/hack/internal/debian"
	"github.com/capstan-dev/capstan/hack/internal/debian/debiantest"
)

func file(name string, mode int64, content string) debiantest.File {
	return debiantest.File{Header: tar.Header{Name: name, Mode: mode, Uname: "root", Gname: "root"}, Content: content}
}

func link(name, target string, kind byte) debiantest.File {
	return debiantest.File{Header: tar.Header{Name: name, Linkname: target, Typeflag: kind, Mode: 0o777}}
}

func TestWrite(t *testing.T) {
	cases := map[string]struct {
		reason   string
		image    Image // default: Postgres
		packages map[string][]debiantest.File
		want     []string
		fails    string
	}{
		"Merged": {
			reason:   "Files of /lib and /bin lie below /usr, also those that a hard link names.",
			packages: map[string][]debiantest.File{"a": {file("./bin/tool", 0o755, "ELF"), link("./bin/same", "./bin/tool", tar.TypeLink)}},
			want: []string{
				"755 0 usr/", "755 0 usr/bin/", "755 0 usr/bin/tool =ELF", "777 0 usr/bin/same ->usr/bin/tool",
			},
		},
		"NoPrivileges": {
			reason:   "No file gives its caller the rights of another user.",
			packages: map[string][]debiantest.File{"a": {file("./usr/bin/su", 0o4755, "ELF"), file("./usr/bin/wall", 0o2755, "ELF")}},
			want:     []string{"755 0 usr/", "755 0 usr/bin/", "755 0 usr/bin/su =ELF", "755 0 usr/bin/wall =ELF"},
		},
		"Omitted": {
			reason: "Documentation, unit files and JIT stay out, licences do not.",
			packages: map[string][]debiantest.File{"a": {
				file("./usr/share/man/man1/tool.1.gz", 0o644, ""), file("./usr/share/doc/a/changelog.gz", 0o644, ""),
				file("./usr/share/doc/a/copyright", 0o644, "GPL"), file("./usr/lib/systemd/system/a.service", 0o644, ""),
				file("./usr/lib/postgresql/17/lib/bitcode/postgres.index.bc", 0o644, ""), file("./etc/init.d/a", 0o755, ""),
				file("./usr/lib/postgresql/17/lib/llvmjit.so", 0o644, "ELF"), file("./usr/lib/postgresql/17/lib/llvmjit_types.bc", 0o644, ""),
				file("./usr/share/manual", 0o644, ""),
			}},
			want: []string{
				"755 0 usr/", "755 0 usr/share/", "755 0 usr/share/doc/", "755 0 usr/share/doc/a/", "644 0 usr/share/doc/a/copyright =GPL",
				"644 0 usr/share/manual =",
			},
		},
		"MySQL": {
			reason: "Messages stay in English, with all character sets; what starts a server by itself stays out, and so do other logins.",
			image:  MySQL(),
			packages: map[string][]debiantest.File{"mysql-server-core": {
				file("./usr/bin/mysql", 0o755, "ELF"), file("./usr/bin/mysqlbinlog", 0o755, "ELF"), file("./usr/bin/mysqld_safe", 0o755, "#!"),
				file("./usr/bin/mysql_migrate_keyring", 0o755, "ELF"), file("./usr/bin/mysqlslap", 0o755, "ELF"),
				file("./usr/lib/mysql/plugin/auth_socket.so", 0o644, "ELF"), file("./usr/lib/mysql/plugin/authentication_webauthn.so", 0o644, "ELF"),
				file("./usr/share/mysql/charsets/Index.xml", 0o644, "<"), file("./usr/share/mysql/english/errmsg.sys", 0o644, "en"),
				file("./usr/share/mysql/norwegian-ny/errmsg.sys", 0o644, "nn"),
			}},
			want: []string{
				"755 0 usr/", "755 0 usr/bin/", "755 0 usr/bin/mysql =ELF", "755 0 usr/bin/mysqlbinlog =ELF", "755 0 usr/lib/", "755 0 usr/lib/mysql/",
				"755 0 usr/lib/mysql/plugin/", "644 0 usr/lib/mysql/plugin/auth_socket.so =ELF", "755 0 usr/share/", "755 0 usr/share/mysql/",
				"755 0 usr/share/mysql/charsets/", "644 0 usr/share/mysql/charsets/Index.xml =<", "755 0 usr/share/mysql/english/",
				"644 0 usr/share/mysql/english/errmsg.sys =en",
			},
		},
		"HugePages": {
			reason: "initdb runs a server by its sample, in a pod that may not use the huge pages of its node.",
			packages: map[string][]debiantest.File{"postgresql-17": {
				file("./usr/share/postgresql/17/postgresql.conf.sample", 0o644, "a\n#huge_pages = try\t\t# on\n#huge_page_size = 0\n"),
			}},
			want: []string{
				"755 0 usr/", "755 0 usr/share/", "755 0 usr/share/postgresql/", "755 0 usr/share/postgresql/17/",
				"644 0 usr/share/postgresql/17/postgresql.conf.sample =a\nhuge_pages = off\t\t# on\n#huge_page_size = 0\n",
			},
		},
		"HugePagesElsewhere": {
			reason:   "A sample of another form would keep what it has without a word.",
			packages: map[string][]debiantest.File{"postgresql-19": {file("./usr/share/postgresql/19/postgresql.conf.sample", 0o644, "#huge_pages = on\n")}},
			fails:    `19/postgresql.conf.sample has no "#huge_pages = try"`,
		},
		"Certificates": {
			reason: "Nobody runs update-ca-certificates.",
			packages: map[string][]debiantest.File{"ca-certificates": {
				file("./usr/share/ca-certificates/mozilla/A.crt", 0o644, "A\n"), file("./usr/share/ca-certificates/mozilla/B.crt", 0o644, "B\n"),
			}},
			want: []string{
				"755 0 usr/", "755 0 usr/share/", "755 0 usr/share/ca-certificates/", "755 0 usr/share/ca-certificates/mozilla/",
				"644 0 usr/share/ca-certificates/mozilla/A.crt =A\n", "644 0 usr/share/ca-certificates/mozilla/B.crt =B\n",
				"755 0 etc/", "755 0 etc/ssl/", "755 0 etc/ssl/certs/", "644 0 etc/ssl/certs/ca-certificates.crt =A\nB\n",
			},
		},
		"Conflict": {
			reason:   "What dpkg would refuse is a mistake here, too.",
			packages: map[string][]debiantest.File{"a": {file("./usr/bin/tool", 0o755, "a")}, "b": {file("./usr/bin/tool", 0o755, "b")}},
			fails:    "usr/bin/tool is in two packages",
		},
		"LinkToOmitted": {
			reason: "A hard link to what is left out would be a link to nothing.",
			packages: map[string][]debiantest.File{
				"a": {file("./usr/share/man/x", 0o644, ""), link("./usr/bin/x", "./usr/share/man/x", tar.TypeLink)},
			},
			fails: "which is left out",
		},
		"Device": {
			reason:   "A container brings its own devices.",
			packages: map[string][]debiantest.File{"a": {{Header: tar.Header{Name: "./dev/sda", Typeflag: tar.TypeBlock}}}},
			fails:    "neither a file nor a folder nor a link",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store := &debian.Store{Dir: t.TempDir()}
			var packages []debian.Package
			for _, name := range slices.Sorted(maps.Keys(tc.packages)) {
				packages = append(packages, debiantest.Put(t, store, name, debiantest.Deb(t, name, ".xz", tc.packages[name]...)))
			}
			image := tc.image
			if image.Name == "" {
				image = Postgres()
			}
			var out bytes.Buffer
			err := image.write(t.Context(), &out, "17", store, packages)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%s\nwant %q, got %v", tc.reason, tc.fails, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(entries(t, &out), func(e string) bool { return strings.Contains(e, " var/") })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBase looks at what the lowest layers have beyond packages.
func TestBase(t *testing.T) {
	store := &debian.Store{Dir: t.TempDir()}
	p := debiantest.Put(t, store, "base-files", debiantest.Deb(t, "base-files", ".gz",
		link("./bin", "usr/bin", tar.TypeSymlink), debiantest.File{Header: tar.Header{Name: "./etc/", Typeflag: tar.TypeDir, Mode: 0o755}},
		file("./etc/os-release", 0o644, "ID=debian\n")))
	for name, want := range map[string][]string{
		"postgres": {
			"777 0 usr/bin/psql ->../lib/postgresql/18/bin/psql", "775 999 run/postgresql/", "644 0 etc/group =root:x:0:\npostgres:x:999:\nnogroup:x:65534:\n",
		},
		"mysql": {
			"775 999 run/mysqld/", "644 0 etc/group =root:x:0:\nmysql:x:999:\nnogroup:x:65534:\n",
			"644 0 etc/passwd =root:x:0:0:root:/root:/bin/sh\nmysql:x:999:999:MySQL:/data:/bin/sh\n" +
				"exporter:x:998:999:Prometheus exporter:/nonexistent:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n",
		},
	} {
		image, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := image.write(t.Context(), &out, base, store, []debian.Package{p}); err != nil {
			t.Fatal(err)
		}
		got := entries(t, &out)
		for _, want := range append(want,
			"700 999 data/", "1777 0 tmp/", "777 0 bin ->usr/bin", "777 0 lib64 ->usr/lib64", "777 0 usr/bin/cat ->busybox",
			"644 0 etc/os-release =ID=debian\n", "644 0 var/lib/dpkg/status.d/base-files =Package: base-files\nVersion: 1\n",
		) {
			if n := count(got, want); n != 1 {
				t.Errorf("%s: want one entry %q, got %d", name, want, n)
			}
		}
	}
	if _, err := Named("mariadb"); err == nil || !strings.Contains(err.Error(), "there is postgres, mysql") {
		t.Errorf("an image that is not there: want those that are, got %v", err)
	}
}

// TestKeep builds a layer twice: the bytes are the same, and what the cache says of them is true.
func TestKeep(t *testing.T) {
	content := func(w io.Writer) error {
		tw := tar.NewWriter(w)
		l := &layerWriter{tar: tw, have: map[string]string{}, omitted: Postgres().omit()}
		return errors.Join(l.made(made{path: "a/b", mode: 0o644, content: "x"}), tw.Close())
	}
	var digests []v1.Hash
	for range 2 {
		dir := t.TempDir()
		if _, ok := cached(dir, "key"); ok {
			t.Error("an empty cache has a layer")
		}
		if _, err := keep(dir, "key", content); err != nil {
			t.Fatal(err)
		}
		l, ok := cached(dir, "key")
		if !ok {
			t.Fatal("the cache has lost a layer")
		}
		packed, err := l.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		digest, size, err := v1.SHA256(packed)
		if err != nil || digest != l.meta.Digest || size != l.meta.Size {
			t.Errorf("the layer is %s with %d bytes, the cache says %v", digest, size, l.meta)
		}
		plain, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		if diff, _, err := v1.SHA256(plain); err != nil || diff != l.meta.DiffID {
			t.Errorf("inside is %s, the cache says %v: %v", diff, l.meta, err)
		}
		digests = append(digests, digest)
		if err := os.Truncate(l.file, 3); err != nil {
			t.Fatal(err)
		}
		if _, ok := cached(dir, "key"); ok {
			t.Error("a layer that was cut short counts as whole")
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("one content gives two layers: %v", digests)
	}

	dir := t.TempDir()
	if _, err := keep(dir, "key", func(io.Writer) error { return errors.New("boom") }); err == nil {
		t.Error("a layer that failed was kept")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("a layer that failed left %v, %v", left, err)
	}
}

func TestGroup(t *testing.T) {
	for _, tc := range []struct {
		image  Image
		layers map[string]string
	}{
		{Postgres(), map[string]string{
			"postgresql-17": "17", "postgresql-client-18": "18", "postgresql-17-pgvector": "17", "patroni": base, "libpq5": base,
			"postgresql-16": base, "prometheus-postgres-exporter": base,
		}},
		{MySQL(), map[string]string{"mysql-server-core": "9.7", "mysql-client-core": "9.7", "libicu78": base, "prometheus-mysqld-exporter": base}},
	} {
		for name, want := range tc.layers {
			if got := tc.image.group(debian.Package{Name: name, Version: "9.7.4-2"}); got != want {
				t.Errorf("%s: layer of %s: want %q, got %q", tc.image.Name, name, want, got)
			}
		}
	}
}

func TestUnpack(t *testing.T) {
	l, err := keep(t.TempDir(), "key", func(w io.Writer) error {
		tw := tar.NewWriter(w)
		l := &layerWriter{tar: tw, have: map[string]string{}, omitted: Postgres().omit()}
		return errors.Join(
			l.made(made{path: "tmp", mode: os.ModeDir | os.ModeSticky | 0o777}), l.made(made{path: "usr/bin/dash", mode: 0o755, content: "ELF"}),
			l.made(made{path: "usr/bin/sh", link: "dash"}), tw.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "root")
	if err := Unpack([]v1.Layer{l}, dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "usr/bin/sh"))
	if err != nil || string(got) != "ELF" {
		t.Errorf("through the link: %q, %v", got, err)
	}
	info, err := os.Stat(filepath.Join(dir, "tmp"))
	if err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("tmp: %v, %v", info.Mode(), err)
	}
}

func entries(t *testing.T, layer io.Reader) []string {
	t.Helper()
	var all []string
	for r := tar.NewReader(layer); ; {
		hdr, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if hdr.ModTime.Unix() != 0 || hdr.Uname != "" {
			t.Errorf("%s tells when or by whom it was made: %v, %q", hdr.Name, hdr.ModTime, hdr.Uname)
		}
		entry := fmt.Sprintf("%o %d %s", hdr.Mode, hdr.Uid, hdr.Name)
		switch hdr.Typeflag {
		case tar.TypeReg:
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			entry += " =" + string(content)
		case tar.TypeSymlink, tar.TypeLink:
			entry += " ->" + hdr.Linkname
		}
		all = append(all, entry)
	}
}

func count(all []string, one string) int {
	n := 0
	for _, e := range all {
		if e == one {
			n++
		}
	}
	return n
}

// TestFrame expects that all that an image is given besides its packages has a place.
func TestFrame(t *testing.T) {
	for _, image := range append(Images(), PyTorch()) {
		for _, f := range image.frame() {
			if f.path == "" {
				t.Errorf("%s: %+v has no path", image.Name, f)
			}
		}
	}
}
