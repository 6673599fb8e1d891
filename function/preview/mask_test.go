// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// mask is a ConfigMap of the world.
func (w *world) mask(name, text string) {
	w.originals["ConfigMap/"+name] = composetest.Object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "payments"}, "data": map[string]any{v1alpha1.KeyMask: text},
	}
}

// demand that copies of the original Database are masked.
func (w *world) demand(name string) {
	w.originals["Database/orders-db"]["metadata"].(map[string]any)["annotations"].(map[string]any)[v1alpha1.AnnotationPreviewsMask] = name
}

func TestMask(t *testing.T) {
	const owners, own = `[{database: orders_db, sql: update people set name = 'x'}]`, `[{database: orders_db, sql: delete from notes}]`
	statement := func(sql string) any { return map[string]any{"database": "orders_db", "sql": sql} }
	cases := map[string]struct {
		reason   string
		mask     string // of the Preview
		demanded string
		unnamed  bool // the owner demands a mask, and does not say which
		maps     map[string]string
		want     []any
		refused  string // in the message of BaseAllowed
	}{
		"None":       {reason: "Data stays as it is without a mask."},
		"Own":        {reason: "The Preview masks.", mask: `{statements: ` + own + `}`, want: []any{statement("delete from notes")}},
		"ConfigMap":  {reason: "Statements may stand in a ConfigMap.", mask: `{configMapRef: {name: mine}}`, maps: map[string]string{"mine": own}, want: []any{statement("delete from notes")}},
		"Demanded":   {reason: "The owner of the original demands a mask.", demanded: "theirs", maps: map[string]string{"theirs": owners}, want: []any{statement("update people set name = 'x'")}},
		"Both":       {reason: "What the owner demands comes first.", mask: `{statements: ` + own + `}`, demanded: "theirs", maps: map[string]string{"theirs": owners}, want: []any{statement("update people set name = 'x'"), statement("delete from notes")}},
		"Missing":    {reason: "Without the owner's mask nothing is copied.", demanded: "theirs", refused: `the annotation capstan.dev/previews-mask of Database orders-db: there is no ConfigMap "theirs"`},
		"MissingOwn": {reason: "Nor without the Preview's.", mask: `{configMapRef: {name: mine}}`, refused: `spec.database.mask.configMapRef: there is no ConfigMap "mine"`},
		"Unnamed":    {reason: "A demand without a name is a demand.", unnamed: true, refused: "the annotation capstan.dev/previews-mask of Database orders-db: it names no ConfigMap"},
		"Name":       {reason: "What the schema of a Database refuses is said here.", demanded: "theirs", maps: map[string]string{"theirs": `[{database: Orders-DB, sql: x}]`}, refused: `the database of number 1, "Orders-DB", is no name of one`},
		"Text":       {reason: "A text is no list of statements.", demanded: "theirs", maps: map[string]string{"theirs": "delete from notes"}, refused: "mask.yaml has to be a list"},
		"Unknown":    {reason: "A word that is misspelt is not passed over.", demanded: "theirs", maps: map[string]string{"theirs": `[{database: d, sql: x, when: y}]`}, refused: "unknown field"},
		"Empty":      {reason: "A mask without statements would hide nothing.", demanded: "theirs", maps: map[string]string{"theirs": `[]`}, refused: "and it has none"},
		"Nobody":     {reason: "A statement runs in a database.", demanded: "theirs", maps: map[string]string{"theirs": `[{sql: x}]`}, refused: "number 1 lacks one of them"},
		"Long":       {reason: "What the schema of a Database refuses is said here.", demanded: "theirs", maps: map[string]string{"theirs": `[{database: d, sql: ` + strings.Repeat("x", 4001) + `}]`}, refused: "more than 4000 characters"},
		"Many":       {reason: "Together they are too many.", demanded: "theirs", mask: `{statements: ` + own + `}`, maps: map[string]string{"theirs": `[` + strings.Repeat(`{database: d, sql: x},`, 32) + `]`}, refused: "there are 33 statements, and at most 32"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			with := ""
			if tc.mask != "" {
				with = ", mask: " + tc.mask
			}
			w := newWorld(t, fmt.Sprintf(`{ttl: 24h, database: {of: orders-db, data: LatestBackup%s}}`, with))
			for name, text := range tc.maps {
				w.mask(name, text)
			}
			if tc.demanded != "" || tc.unnamed {
				w.demand(tc.demanded)
			}
			w.settle()
			c := w.condition(string(v1alpha1.TypeBaseAllowed))
			if tc.refused != "" {
				if w.composed[Database] != nil || compose.Text(c, "reason") != string(v1alpha1.ReasonMaskUnusable) || !strings.Contains(compose.Text(c, "message"), tc.refused) {
					t.Fatalf("%s: nothing should be copied, got %v and %v", tc.reason, w.composed[Database], c)
				}
				return
			}
			if w.composed[Database] == nil {
				t.Fatalf("%s: nothing is copied: %v", tc.reason, c)
			}
			if diff := cmp.Diff(tc.want, compose.List(w.composed[Database].Map(), "spec", "from", "mask")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMaskStays: a copy was masked when it was made. A mask that changes or goes changes nothing of it, and is not read any more.
func TestMaskStays(t *testing.T) {
	w := newWorld(t, `{ttl: 24h, database: {of: orders-db, data: LatestBackup}}`)
	w.mask("theirs", `[{database: orders_db, sql: one}]`)
	w.demand("theirs")
	w.settle()
	before := compose.List(w.composed[Database].Map(), "spec", "from", "mask")
	w.mask("theirs", `[{database: orders_db, sql: another}]`)
	w.settle()
	delete(w.originals, "ConfigMap/theirs")
	w.settle()
	if diff := cmp.Diff(before, compose.List(w.composed[Database].Map(), "spec", "from", "mask")); diff != "" || len(before) != 1 {
		t.Errorf("-before, +after:\n%s", diff)
	}
	if w.plan.Requires[maskDemanded].Name != "" {
		t.Error("the mask should not be read any more")
	}
}
