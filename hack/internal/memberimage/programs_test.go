// SPDX-License-Identifier: Apache-2.0

package memberimage

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestScript runs a program with a loader that prints what it was told to run.
func TestScript(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"usr/sbin", "usr/lib/x86_64-linux-gnu", "lib64"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mysqld := filepath.Join(root, "usr/sbin/mysqld")
	if err := os.WriteFile(mysqld, linked(t, "/lib64/ld.so"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "lib64/ld.so"), []byte("#!/bin/sh\nprintf '%s|' \"$$\" \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	script, err := program{path: "usr/sbin/mysqld", args: []string{"--basedir=%[1]s/usr"}}.script(root)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mysqld")
	for range 2 { // The second time replaces it.
		if err := replace(file, script); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(file, "--defaults-file=a b", "--user=root")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, got, _ := strings.Cut(string(out), "|")
	if pid != strconv.Itoa(cmd.Process.Pid) {
		t.Errorf("a signal to process %d has to reach the program, which is %s", cmd.Process.Pid, pid)
	}
	want := strings.Join([]string{
		"--library-path", root + "/usr/lib/x86_64-linux-gnu", mysqld, "--defaults-file=a b", "--user=root", "--basedir=" + root + "/usr", "",
	}, "|")
	if got != want {
		t.Errorf("want what the test says first, and what the program needs last:\nwant %s\ngot  %s", want, got)
	}
}

func TestInterpreter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "script")
	for content, want := range map[string]string{"#!/bin/sh\necho not compiled\n": "bad magic number", string(linked(t, "")): "names no loader"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := interpreter(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want %q, got %v", content, want, err)
		}
	}
}

// linked is the beginning of a program that names a loader; without one it is linked statically.
func linked(t *testing.T, loader string) []byte {
	t.Helper()
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64,
	}
	segment := elf.Prog64{Type: uint32(elf.PT_INTERP), Off: 64 + 56, Filesz: uint64(len(loader)) + 1}
	if loader == "" {
		segment.Type = uint32(elf.PT_NULL)
	}
	var out bytes.Buffer
	for _, part := range []any{header, segment} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	out.WriteString(loader + "\x00")
	return out.Bytes()
}
