// SPDX-License-Identifier: Apache-2.0

package binlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// Servers in testdata, which has logs that a server of 9.7.4 wrote one after the other.
const (
	own   = "f4e5255b-e967-11f1-97b0-02fc00000001"
	other = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
)

func at(micro int64) time.Time { return time.UnixMicro(micro).UTC() }

func TestRead(t *testing.T) {
	began := time.Date(2026, 11, 26, 7, 9, 21, 0, time.UTC)
	type want struct {
		Previous, Set string
		First, Last   time.Time
		Closed        bool
	}
	cases := map[string]struct {
		reason string
		want   want
	}{
		"binlog.000001": {
			"The first log follows on nothing.",
			want{"", own + ":1-2", at(1795676961286924), at(1795676961289474), true},
		},
		"binlog.000002": {
			"Transactions may have tags, and may be of another server.",
			want{own + ":1-2", other + ":7," + own + ":3:b:1:payroll:1", at(1795676961325914), at(1795676961373735), true},
		},
		"binlog.000003": {
			"The set before it has tags. What came from another server keeps its time, and may be compressed.",
			want{other + ":7," + own + ":1-3:b:1:payroll:1", own + ":4-5:b:2", at(1700000000123456), at(1795676961389765), true},
		},
		"binlog.000004": {
			"A log may have no transaction.",
			want{other + ":7," + own + ":1-5:b:1-2:payroll:1", "", time.Time{}, time.Time{}, true},
		},
		"binlog.000005": {
			"One that is being written has no end, and this one no checksums.",
			want{other + ":7," + own + ":1-5:b:1-2:payroll:1", own + ":6", at(1795676961423192), at(1795676961423192), false},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name)
			info, err := ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, want{info.Previous.String(), info.Set.String(), info.First, info.Last, info.Closed}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			head, err := Head(path)
			if diff := cmp.Diff([]any{tc.want.Previous, "", began}, []any{head.Previous.String(), head.Set.String(), head.Began}); diff != "" || err != nil {
				t.Errorf("the head is read as (%v): -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestReadFails(t *testing.T) {
	whole, err := os.ReadFile("testdata/binlog.000002")
	if err != nil {
		t.Fatal(err)
	}
	flip := func(at int) []byte {
		out := bytes.Clone(whole)
		out[at] ^= 1
		return out
	}
	cases := map[string]struct {
		reason  string
		raw     []byte
		message string
		torn    bool
		set     string
	}{
		"Empty":       {"A file without content has no beginning.", nil, "no beginning", true, ""},
		"Other":       {"A file of another kind is not read.", []byte("PK\x03\x04 and so on"), "no binary log", false, ""},
		"Encrypted":   {"What the server encrypts cannot be read, and the message names the parameter.", []byte("\xfdbin and so on"), "binlog_encryption", false, ""},
		"Head":        {"It may end within the head.", whole[:100], "ends within", true, ""},
		"Transaction": {"After a crash it may end within a transaction. What is whole counts.", whole[:400], "ends within", true, own + ":payroll:1"},
		"Number":      {"A changed number is noticed by the checksum.", flip(0xed), "checksum", false, ""},
		"Previous":    {"So is a changed set.", flip(0xb0), "checksum", false, ""},
		"NoFormat":    {"A log without its first event is none.", append([]byte(magic), whole[0x7f:]...), "cannot be what it says", false, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			info, err := Read(bytes.NewReader(tc.raw))
			if err == nil || !strings.Contains(err.Error(), tc.message) || errors.Is(err, ErrTorn) != tc.torn || info.Set.String() != tc.set {
				t.Errorf("%s: read as %q with %v", tc.reason, info.Set, err)
			}
		})
	}
	if _, err := ReadFile("testdata/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestEach(t *testing.T) {
	var got []string
	err := Each("testdata/binlog.000002", func(one Transaction) bool {
		got = append(got, one.String()+" "+one.Committed.Format("05.000000"))
		if set, err := one.Set(); err != nil || set.String() != one.String() {
			t.Errorf("%s is the set %q (%v)", one, set, err)
		}
		return len(got) < 3
	})
	want := []string{own + ":payroll:1 21.325914", own + ":3 21.365556", own + ":b:1 21.372770"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("it ends with %v: -want +got:\n%s", err, diff)
	}
	if err := Each("binlog_test.go", nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("another file was taken for a binary log: %v", err)
	}
}

func TestUntil(t *testing.T) {
	for mark, want := range map[string]string{
		own + ":payroll:1": own + ":1-2:payroll:1",
		own + ":3":         own + ":1-3:payroll:1",
		other + ":7":       other + ":7," + own + ":1-3:b:1:payroll:1",
		other + ":8":       other + ":7," + own + ":1-3:b:1:payroll:1",
	} {
		set, err := gtid.Parse(mark)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := UntilFile("testdata/binlog.000002", set); err != nil || got.String() != want {
			t.Errorf("until %s it has %q (%v), want %q", mark, got, err, want)
		}
	}
}

func TestVarint(t *testing.T) {
	cases := map[string]struct {
		raw  []byte
		want uint64
	}{
		"Zero":  {[]byte{0}, 0},
		"One":   {[]byte{0xfe}, 127},
		"Two":   {[]byte{0xd1, 0x03}, 0xf4},
		"Eight": {[]byte{0x7f, 1, 2, 3, 4, 5, 6, 7}, 0x07060504030201},
		"Nine":  {[]byte{0xff, 1, 2, 3, 4, 5, 6, 7, 8}, 0x0807060504030201},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := reader{rest: tc.raw}
			if got := r.varint(); got != tc.want || r.err != nil || len(r.rest) != 0 {
				t.Errorf("%x is read as %d with %v, and %d bytes are left, want %d", tc.raw, got, r.err, len(r.rest), tc.want)
			}
			r = reader{rest: tc.raw[:len(tc.raw)-1]}
			if r.varint(); r.err == nil {
				t.Errorf("%x without its end is read", tc.raw)
			}
		})
	}
}

// FuzzRead: no content makes it fail otherwise than by an error.
func FuzzRead(f *testing.F) {
	for n := range 5 {
		raw, err := os.ReadFile(fmt.Sprintf("testdata/binlog.00000%d", n+1))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
		f.Add(raw[:len(raw)/2])
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		info, err := Read(bytes.NewReader(raw))
		if err != nil {
			return
		}
		if !info.Set.Empty() && info.Last.Before(info.First) {
			t.Errorf("the last transaction is of %s, before the first one of %s", info.Last, info.First)
		}
	})
}
