// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/test/browser"
)

// TestConsoleRestore goes back to an earlier moment through the console, in a real browser, and undoes that: rows from after the moment
// are gone, and then there again.
func TestConsoleRestore(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	b := browser.Start(t, console(t, "capstan-console-restore"))
	d := backedUpDatabase(t, ns)
	app := psql(t, d, "app")
	app.must(t, `create table ledger (id int primary key); insert into ledger select generate_series(1, 50)`)
	at := app.must(t, `select to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`)
	app.must(t, `insert into ledger values (51)`)
	logIn(t, b, ns)
	page := "/n/" + ns + "/databases/o/" + d.Name
	offered := func(act string) {
		t.Helper()
		within(t, creation, act+" is offered", func(context.Context) error {
			b.Open(page)
			if !browser.Value[bool](b, "document.getElementById('act-"+act+"') !== null") {
				return errors.New("it is not")
			}

			return nil
		})
		b.Click("act-" + act)
	}

	offered("restore")
	// The slider has every moment that can be restored.
	b.Set("s-at", browser.Value[string](b, "document.getElementById('s-at').min"))
	if earliest := browser.Value[string](b, "document.getElementById('i-at').value"); earliest == "" || earliest > at {
		t.Errorf("the slider begins at %q, want a moment before %s", earliest, at)
	}
	b.Fill("i-at", at)
	b.Press("main form button")
	b.Sees("What will happen")
	b.Screenshot("restore")
	b.Click("confirm")
	b.Sees("It is requested")
	within(t, restoring, "the data of the moment is there", databaseCondition(d, v1alpha1.TypeRestored, corev1.ConditionTrue, v1alpha1.ReasonRestored))
	eventually(t, "the rows of the moment are there, and no other", rows(t, app, 50))

	offered("undo")
	b.Sees("What will happen")
	b.Click("confirm")
	b.Sees("It is requested")
	within(t, restoring, "clients are led back", databaseCondition(d, v1alpha1.TypeRestored, corev1.ConditionTrue, v1alpha1.ReasonRestoreUndone))
	eventually(t, "all rows of before are there", rows(t, app, 51))
	b.Open(page)
	b.Screenshot("undone")
	if ran := b.Ran(); len(ran) > 0 {
		t.Errorf("scripts opened dialogs or failed: %q", ran)
	}
}
