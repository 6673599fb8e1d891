// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStoring: what decides how data is stored must be the same for a server over a copy. How much memory it takes must not.
func TestStoring(t *testing.T) {
	got := Storing("[mysqld]\ninnodb_ft_min_token_size=2\nft-min-word-len = 3\nlower_case_table_names=0\nmax_connections=100\ninnodb_buffer_pool_size=8G\n" +
		"innodb_ft_cache_size=8000000\ngroup_replication_start_on_boot=OFF\n")
	slices.Sort(got)
	want := []string{"ft_min_word_len=3", "innodb_ft_cache_size=8000000", "innodb_ft_min_token_size=2", "lower_case_table_names=0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTidy: a copy has no identity, no keys and no logs of the server that was started over it.
func TestTidy(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"auto.cnf", "private_key.pem", "relay-capstan1.000001", "relay-capstan1.index", "#clone/status", "ibdata1", "relay/t.ibd", "relay_race/t.ibd"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Tidy(dir); err != nil {
		t.Fatal(err)
	}
	var got []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff([]string{"ibdata1", "relay", "relay_race"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCause is the first error of a log: others follow from it.
func TestCause(t *testing.T) {
	r := &Running{}
	if got := r.Cause(); got != "see the log of the pod" {
		t.Errorf("without an error: %q", got)
	}
	for _, line := range []string{
		"2026-11-26T07:00:29Z 0 [Warning] [MY-010075] [Server] No existing UUID", "2026-11-26T07:00:29Z 1 [ERROR] [MY-012224] [InnoDB] Header page contains  inconsistent data",
		"2026-11-26T07:00:29Z 0 [ERROR] [MY-010119] [Server] Aborting",
	} {
		r.note([]byte(line))
	}
	if got, want := r.Cause(), "[MY-012224] [InnoDB] Header page contains inconsistent data"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
