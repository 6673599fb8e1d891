// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package mysql tests what the image of MySQL's members has below their program.
package mysql

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/catalogue"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// plugins that members load.
func plugins() []string { return []string{"auth_socket", "group_replication", "mysql_clone"} }

func TestUsers(t *testing.T) {
	root := rootfs(t)
	for file, want := range map[string][]string{
		"etc/passwd": {
			fmt.Sprintf("%s:x:%d:%d:", mysqlmember.UserServer, mysqlmember.UIDServer, mysqlmember.GIDServer),
			fmt.Sprintf("%s:x:%d:%d:", mysqlmember.UserExporter, mysqlmember.UIDExporter, mysqlmember.GIDServer),
		},
		"etc/group": {fmt.Sprintf("%s:x:%d:", mysqlmember.UserServer, mysqlmember.GIDServer)},
	} {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range want {
			if !bytes.Contains(content, []byte("\n"+line)) {
				t.Errorf("%s lacks %q:\n%s", file, line, content)
			}
		}
	}
}

// TestLibraries expects that nothing that was left out of the image is a library of what is in it.
func TestLibraries(t *testing.T) {
	root := rootfs(t)
	shared, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu"))
	if err != nil || len(shared) != 1 {
		t.Fatalf("want one folder of libraries, got %v, %v", shared, err)
	}
	programs := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := elf.Open(path)
		if err != nil {
			return nil // It is no program.
		}
		defer func() { _ = f.Close() }()
		programs++
		libraries, err := f.ImportedLibraries()
		if err != nil {
			return err
		}
		for _, library := range libraries {
			_, central := os.Stat(filepath.Join(shared[0], library))
			_, beside := os.Stat(filepath.Join(filepath.Dir(path), library))
			if central != nil && beside != nil {
				t.Errorf("%s needs %s, which the image lacks", strings.TrimPrefix(path, root), library)
			}
		}
		return nil
	})
	if err != nil || programs < 100 {
		t.Errorf("want all programs and libraries, got %d, %v", programs, err)
	}
}

// TestServer makes the data of a server and starts it, as the image's user and with the image's files only.
func TestServer(t *testing.T) {
	c := image{root: rootfs(t), data: t.TempDir()}
	if err := os.Chown(c.data, mysqlmember.UIDServer, mysqlmember.GIDServer); err != nil {
		t.Fatal(err)
	}
	// The folder that the packages compiled in is not in the image.
	mysqld := []string{
		"/usr/sbin/mysqld", "--no-defaults", "--datadir=/data/mysql", "--tmpdir=/data", "--secure-file-priv=NULL", "--mysqlx=OFF",
		"--socket=/data/socket", "--pid-file=/data/pid", "--skip-networking", "--innodb-buffer-pool-size=16M",
	}
	if out, err := c.command(append(mysqld, "--initialize-insecure")...).CombinedOutput(); err != nil {
		t.Fatalf("cannot make the data of a server: %v\n%s", err, out)
	}
	args := mysqld
	for _, p := range plugins() {
		args = append(args, "--plugin-load-add="+p+".so")
	}
	var log bytes.Buffer
	server := c.command(args...)
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	client := func(statement string) (string, error) {
		out, err := c.command("/usr/bin/mysql", "--no-defaults", "--socket=/data/socket", "--user=root", "--batch", "--skip-column-names",
			"--execute="+statement).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	version, err := "", errors.New("never asked")
	for deadline := time.Now().Add(2 * time.Minute); err != nil && time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		version, err = client("SELECT @@version")
	}
	if err != nil {
		_ = server.Process.Kill()
		<-ended
		t.Fatalf("cannot start a server: %v: %s\n%s", err, version, log.String())
	}

	has, err := catalogue.MySQL()
	if err != nil {
		t.Fatal(err)
	}
	if want := has.Majors[0]; !strings.HasPrefix(version, want.Version+"-") || !strings.HasPrefix(version, want.Major+".") {
		t.Errorf("the catalogue has %s of %s, and the server says %s", want.Version, want.Major, version)
	}
	got, err := client("SELECT GROUP_CONCAT(REPLACE(plugin_library, '.so', '') ORDER BY plugin_library) FROM information_schema.plugins " +
		"WHERE plugin_status = 'ACTIVE' AND plugin_library IS NOT NULL")
	if diff := cmp.Diff(strings.Join(plugins(), ","), got); err != nil || diff != "" {
		t.Errorf("active plugins: %v, -want, +got:\n%s", err, diff)
	}
	// Character sets, messages and ICU are files of the image.
	got, err = client("SELECT CONVERT(_latin2 0xA3 USING utf8mb4), REGEXP_LIKE('ß', '[[:alpha:]]'), UPPER('é' COLLATE utf8mb4_0900_ai_ci)")
	if diff := cmp.Diff("Ł\t1\tÉ", got); err != nil || diff != "" {
		t.Errorf("characters: %v, -want, +got:\n%s", err, diff)
	}
	if got, err = client("SELECT 1 FROM mysql.none"); err == nil || !strings.Contains(got, "Table 'mysql.none' doesn't exist") {
		t.Errorf("a message in English: got %q, %v", got, err)
	}
	if out, err := c.command("/usr/bin/prometheus-mysqld-exporter", "--version").CombinedOutput(); err != nil ||
		!bytes.Contains(out, []byte("version "+has.Tools["mysqld-exporter"])) {
		t.Errorf("the catalogue has the exporter %s, and it says %s, %v", has.Tools["mysqld-exporter"], out, err)
	}
	if out, err := c.command("/usr/bin/restic", "version").CombinedOutput(); err != nil || !bytes.HasPrefix(out, []byte("restic "+has.Tools["restic"]+" ")) {
		t.Errorf("the catalogue has restic %s, and it says %s, %v", has.Tools["restic"], out, err)
	}
	if out, err := client("SHUTDOWN"); err != nil {
		t.Errorf("cannot stop the server: %v: %s", err, out)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v\n%s", err, log.String())
		}
	case <-time.After(time.Minute):
		_ = server.Process.Kill()
		<-ended
		t.Errorf("the server did not stop\n%s", log.String())
	}
}

// TestPrograms runs programs without a container, as other tests do.
func TestPrograms(t *testing.T) {
	dir := os.Getenv("CAPSTAN_PROGRAM_MYSQL")
	if dir == "" {
		t.Fatal(`cannot find programs of MySQL: run make integration, or first eval "$(go -C hack run ./programs mysql)"`)
	}
	for _, name := range []string{"mysql", "mysqladmin", "mysqlbinlog", "mysqld", "mysqldump"} {
		out, err := exec.Command(filepath.Join(dir, name), "--no-defaults", "--version").CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("Ver 9.7.")) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// An image whose files are the root of what runs, and a folder that is its data.
type image struct{ root, data string }

// command runs a program of the image as its user. Nothing is written but below /data, and it ends with the command.
func (c image) command(args ...string) *exec.Cmd {
	const script = `root=$1 data=$2 user=$3 && shift 3 && mount --bind "$root" "$root" && mount --bind "$data" "$root/data" &&
		mount --rbind /dev "$root/dev" && mount -o remount,bind,ro "$root" && exec chroot --userspec="$user" "$root" "$@"`
	user := fmt.Sprintf("%d:%d", mysqlmember.UIDServer, mysqlmember.GIDServer)
	cmd := exec.Command("unshare", append([]string{"--mount", "--pid", "--fork", "--kill-child", "--propagation=private", "sh", "-c", script, "sh", c.root, c.data, user}, args...)...)
	cmd.Env = []string{"PATH=/usr/bin:/usr/sbin:/bin:/sbin", "LANG=C.UTF-8", "HOME=/data"}
	return cmd
}

// rootfs of the image.
func rootfs(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("CAPSTAN_CI") != "" {
			t.Fatal("a server in the files of its image needs root")
		}
		t.Skip("a server in the files of its image needs root")
	}
	cmd := exec.Command("go", "-C", "hack", "run", "./member-image", "rootfs", "mysql")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot unpack the image: %v", err)
	}
	return strings.TrimSpace(string(out))
}
