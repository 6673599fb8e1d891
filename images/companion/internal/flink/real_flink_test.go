// SPDX-License-Identifier: Apache-2.0

//go:build flink

package flink_test

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	contract "github.com/capstan-dev/capstan/apis/flink"
)

// home of Flink, with the job in testdata compiled against its jars.
func home(t *testing.T) string {
	t.Helper()
	program := os.Getenv("CAPSTAN_PROGRAM_FLINK")
	if program == "" {
		t.Fatal(`this test needs Flink: eval "$(go -C hack run ./programs flink)"`)
	}
	libs, err := filepath.Glob(filepath.Join(program, "lib", "python3*", "site-packages", "pyflink", "lib"))
	if err != nil || len(libs) != 1 {
		t.Fatalf("cannot find Flink's jars in %s: %v, %v", program, libs, err)
	}
	dir, classes := t.TempDir(), t.TempDir()
	if err := os.Symlink(libs[0], filepath.Join(dir, "lib")); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("javac", "-nowarn", "-d", classes, "-cp", filepath.Join(libs[0], "*"), filepath.Join("testdata", "job", "Account.java")).CombinedOutput()
	if err != nil {
		t.Fatalf("cannot compile the job: %v: %s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(dir, "usrlib"), 0o750); err != nil {
		t.Fatal(err)
	}
	jar, err := os.Create(filepath.Join(dir, "usrlib", "job.jar"))
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(jar)
	if err := w.AddFS(os.DirFS(classes)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := jar.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRealFlink takes a stream with Flink itself through every fault that one of its processes can have.
func TestRealFlink(t *testing.T) {
	r := newRig(t, contract.Plan{MainClass: "Account", Args: []string{"20"}, CheckpointSeconds: 2, SavepointSeconds: 60, KeepSavepoints: 2, Slots: 2})
	r.home, r.java, r.job, r.task = home(t), "java", 700<<20, 1<<30
	throughFaults(t, r, 3*time.Minute)
}
