// SPDX-License-Identifier: Apache-2.0

package memberimage

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/debian"
	"github.com/capstan-dev/capstan/hack/internal/debian/debiantest"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// TestLock compares the locks of the repository with what they were made for, and the catalogues with the locks.
func TestLock(t *testing.T) {
	root, err := build.Repository()
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range append(Images(), PyTorch()) {
		t.Run(image.Name, func(t *testing.T) { locked(t, root, image) })
	}
}

func locked(t *testing.T, root string, image Image) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, image.Lock()))
	if err != nil {
		t.Fatal(err)
	}
	lock, err := debian.ParseLock(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(lock.Format(image.lockComment())), string(data)); diff != "" {
		t.Errorf("the lock was not written by member-image lock: -want, +got:\n%s", diff)
	}
	want := image.request
	for _, architecture := range want.Architectures {
		var names []string
		for _, p := range lock.For(architecture) {
			names = append(names, p.Name)
			if !slices.Contains(want.Suites, p.Suite) {
				t.Errorf("%s %s is of suite %q, which is not asked for", architecture, p.Name, p.Suite)
			}
		}
		for _, name := range want.Names {
			if !slices.Contains(names, name) {
				t.Errorf("%s: %q is asked for and not locked: run member-image lock", architecture, name)
			}
		}
		for _, name := range want.Without {
			if slices.Contains(names, name) {
				t.Errorf("%s: %q is left out and locked: run member-image lock", architecture, name)
			}
		}
	}

	if image.Server == "" {
		return
	}
	described, err := os.ReadFile(filepath.Join(root, image.catalogue()))
	if err != nil {
		t.Fatal(err)
	}
	var c catalogue
	if err := yaml.UnmarshalStrict(described, &c); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if c.Lock != hex.EncodeToString(sum[:]) {
		t.Error("the catalogue was read from another lock: run member-image lock")
	}
	var versions []string
	for _, m := range c.Majors {
		versions = append(versions, m.Major)
	}
	if diff := cmp.Diff(image.Versions, versions); diff != "" {
		t.Errorf("versions in the catalogue: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(len(image.tools), len(c.Tools)); diff != "" {
		t.Errorf("tools in the catalogue: -want, +got:\n%s", diff)
	}
}

// TestLayers builds an image of tiny packages from a mirror.
func TestLayers(t *testing.T) {
	packages := map[string][]byte{}
	lock := debian.Lock{Snapshots: map[string]time.Time{"sid": time.Unix(0, 0)}}
	for _, name := range []string{"dash", "postgresql-15", "postgresql-17", "postgresql-18"} {
		content := debiantest.Deb(t, name, ".xz", file("./usr/lib/"+name+"/program", 0o755, name))
		p := debiantest.Package(name, content)
		packages["/debian/"+p.Path] = content
		lock.Packages = append(lock.Packages, p)
	}
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		content, ok := packages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	defer srv.Close()
	b := &Builder{
		Printer: progress.New(t.Output()), Root: t.TempDir(), Cache: t.TempDir(),
		Mirrors: debian.Mirrors{"debian": srv.URL + "/debian"},
	}
	write := func() {
		if err := os.MkdirAll(filepath.Join(b.Root, "images/postgres"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.Root, Postgres().Lock()), lock.Format("Test.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	first, err := b.Layers(t.Context(), Postgres(), "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 4 || asked != 4 {
		t.Fatalf("want a base, a layer for each major and 4 downloads, got %d layers and %d downloads", len(first), asked)
	}

	// A change of one package is a change of its layer.
	content := debiantest.Deb(t, "postgresql-18", ".xz", file("./usr/lib/postgresql-18/program", 0o755, "newer"))
	lock.Packages[3] = debiantest.Package("postgresql-18", content)
	packages["/debian/"+lock.Packages[3].Path] = content
	write()
	second, err := b.Layers(t.Context(), Postgres(), "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	for i := range first {
		a, _ := first[i].Digest()
		b, _ := second[i].Digest()
		if changed, want := a != b, i == 3; changed != want {
			t.Errorf("layer %d: want changed %t, got %t", i, want, changed)
		}
	}
	if asked != 5 {
		t.Errorf("want one more download, got %d", asked-4)
	}

	dir, err := b.Rootfs(t.Context(), Postgres(), "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "usr/lib/postgresql-18/program")); err != nil || string(got) != "newer" {
		t.Errorf("the root file system has %q, %v", got, err)
	}

	complete := slices.Clone(lock.Packages)
	lock.Packages = complete[:3]
	write()
	if _, err := b.Layers(t.Context(), Postgres(), "linux/amd64"); err == nil || !strings.Contains(err.Error(), "no package has PostgreSQL 18") {
		t.Errorf("a version of the catalogue that the image has not: want an error, got %v", err)
	}
	lock.Packages = complete

	lock.Packages[3].SHA256 = strings.Repeat("0", 64)
	lock.Packages[3].Path = "pool/main/gone.deb"
	write()
	if _, err := b.Layers(t.Context(), Postgres(), "linux/amd64"); err == nil || !strings.Contains(err.Error(), "member-image lock postgres") {
		t.Errorf("a package that is gone: want the command that helps, got %v", err)
	}
	for reason, platform := range map[string]string{"the lock has no packages for it": "linux/riscv64", "Debian is Linux": "darwin/arm64"} {
		if _, err := b.Layers(t.Context(), Postgres(), platform); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: want %q, got %v", platform, reason, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	store := &debian.Store{Dir: t.TempDir()}
	var packages []debian.Package
	put := func(name, version string, files ...debiantest.File) {
		p := debiantest.Put(t, store, name, debiantest.Deb(t, name, ".gz", files...))
		p.Version = version
		packages = append(packages, p)
	}
	put("patroni", "4.1.5-2")
	for _, major := range Postgres().Versions {
		put("postgresql-"+major, major+".6-0+deb13u1",
			file("./usr/share/postgresql/"+major+"/extension/hstore.control", 0o644, "comment = 'store'\ndefault_version = '1.8'\n"))
	}
	put("postgresql-17-pgvector", "1:0.8.0-1",
		file("./usr/share/postgresql/17/extension/vector.control", 0o644, "default_version = '0.8.0'\n"),
		file("./usr/share/postgresql/17/extension/vector--0.8.0.sql", 0o644, "--"))
	got, err := Postgres().describe(store, packages)
	if err != nil {
		t.Fatal(err)
	}
	want := catalogue{Tools: map[string]string{"patroni": "4.1.5"}, Majors: []major{
		{"15", "15.6", map[string]string{"hstore": "1.8"}},
		{"17", "17.6", map[string]string{"hstore": "1.8", "vector": "0.8.0"}},
		{"18", "18.6", map[string]string{"hstore": "1.8"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, err := Postgres().describe(store, packages[:2]); err == nil {
		t.Error("a major without packages must not get lost")
	}
	packages[1] = debiantest.Put(t, store, "postgresql-15", debiantest.Deb(t, "postgresql-15", ".gz",
		debiantest.File{Header: tar.Header{Name: "./usr/share/postgresql/15/extension/x.control", Mode: 0o644}, Content: "comment = 'x'\n"}))
	if _, err := Postgres().describe(store, packages); err == nil {
		t.Error("an extension without a version cannot be made")
	}
}

// TestDescribeMySQL expects a version without extensions, which MySQL has not.
func TestDescribeMySQL(t *testing.T) {
	packages := []debian.Package{{Name: "mysql-server-core", Version: "9.7.4-2"}, {Name: "prometheus-mysqld-exporter", Version: "0.19.0-2"}}
	got, err := MySQL().describe(nil, packages)
	if err != nil {
		t.Fatal(err)
	}
	described, err := got.format(MySQL())
	if err != nil {
		t.Fatal(err)
	}
	want := `# Written by "go -C hack run ./member-image lock mysql". What the image mysql has.
lock: ""
majors:
- major: "9.7"
  version: 9.7.4
tools:
  mysqld-exporter: 0.19.0
`
	if diff := cmp.Diff(want, string(described)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	packages[0].Version = "26.7.1-1"
	if _, err := MySQL().describe(nil, packages); err == nil || !strings.Contains(err.Error(), "cannot find MySQL 9.7") {
		t.Errorf("a package of another series must not get the name of this one, got %v", err)
	}
}

// TestContainerfile holds them to what the other way of building gives.
func TestContainerfile(t *testing.T) {
	root, err := build.Repository()
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range Images() {
		data, err := os.ReadFile(filepath.Join(root, "images", image.Name, "Containerfile"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(data)) {
			for _, instruction := range []string{"ENV ", "USER ", "ENTRYPOINT "} {
				if strings.HasPrefix(line, instruction) {
					got = append(got, strings.TrimSpace(line))
				}
			}
		}
		want := []string{"ENV " + strings.Join(image.Env, " "), "USER " + User, `ENTRYPOINT ["` + Member + `"]`}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", image.Name, diff)
		}
	}
}
