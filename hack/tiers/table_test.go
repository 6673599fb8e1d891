// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/tiers"
)

func TestTable(t *testing.T) {
	p := &project{Catalogue: catalogue(), root: t.TempDir(), out: &bytes.Buffer{}}
	if err := os.Mkdir(filepath.Join(p.root, "test"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := (&tableCmd{Check: true}).Run(p); err == nil || !strings.Contains(err.Error(), "make generate") {
		t.Errorf("a missing page should be reported with its remedy, got: %v", err)
	}
	if err := (&tableCmd{}).Run(p); err != nil {
		t.Fatal(err)
	}
	if err := (&tableCmd{Check: true}).Run(p); err != nil {
		t.Errorf("what was generated should be right, got: %v", err)
	}
	p.Tests[0].Minutes++
	if err := (&tableCmd{Check: true}).Run(p); err == nil {
		t.Error("an outdated page should be reported")
	}
}

func TestPlan(t *testing.T) {
	p, out := started(t, 0)
	if err := tiers.Record(p.Ledger, pass("TestSlow", 9), pass("TestShort", 3), pass("TestSlowThree", 1)); err != nil {
		t.Fatal(err)
	}
	if err := (&planCmd{Left: 12 * time.Minute, At: day}).Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"12m0s left for 3, and 1 of them run", "runs  TestSlow ", "it passed last on 2026-11-15", "later TestShort ", "nothing counts as touched"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the plan should have %q, got:\n%s", want, out)
		}
	}
}
