// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// TestMaskOfAnOldImage: an image that does not know masks would serve data as it was. It refuses the file, and any other file stays as it was.
func TestMaskOfAnOldImage(t *testing.T) {
	read := func(from *engine.Source) pgmember.Config {
		c, err := pgmember.ParseConfig([]byte(memberFile(engine.Member{From: from})))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if got := read(&engine.Source{Path: "/x"}).Version; got != 0 {
		t.Errorf("a file without a mask has version %d, and members of an earlier image would refuse it", got)
	}
	m := &engine.Mask{Statements: []engine.Statement{{Database: "a", SQL: "b"}}, Preload: []string{"c"}}
	got := read(&engine.Source{Path: "/x", Mask: m})
	want := &pgmember.Mask{Statements: []pgmember.Statement{{Database: "a", SQL: "b"}}, Preload: []string{"c"}}
	if diff := cmp.Diff(want, got.From.Mask); got.Version != pgmember.MaskVersion || diff != "" {
		t.Errorf("version %d, -want, +got:\n%s", got.Version, diff)
	}
}
