// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// How often what only a superuser can make is looked at without a reason, and while something is missing: at first sooner, for the
// provider makes databases seconds after there is a leader, and who made the Database waits for their extensions.
const (
	manageEvery   = 10 * time.Minute
	manageMissing = 15 * time.Second
	manageFirst   = time.Second
)

// notManaged is the reason of a leader that could not make what only a superuser can.
const notManaged = "RolesOrExtensionsFailed"

// superuse makes what only a superuser can, while this member leads.
func (m *member) superuse(ctx context.Context) error {
	last, missed := "", manageFirst
	for {
		pause := manageEvery
		if m.leads.Load() {
			err := m.makeManaged(ctx)
			var missing *managed.Missing
			switch {
			case err == nil:
				m.told.clear(notManaged)
				missed = manageFirst
			case errors.As(err, &missing):
				m.told.clear(notManaged)
				pause, missed = missed, min(2*missed, manageMissing)
			case m.leads.Load():
				pause = manageMissing
				m.told.hinder(notManaged, err.Error())
			}
			if text := fmt.Sprint(err); text != last {
				last = text
				m.log.Info("looked at roles and extensions", "result", text)
			}
		} else {
			m.told.clear(notManaged)
			missed = manageFirst
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.manage:
		case <-time.After(pause):
		}
	}
}

// makeManaged once.
func (m *member) makeManaged(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	w, err := readWanted()
	if err != nil {
		return err
	}
	verifier, err := os.ReadFile(layout.Verifier)
	if err != nil {
		return fmt.Errorf("cannot read the verifier of the platform's password: %w", err)
	}
	return managed.Apply(ctx, layout.Postgres, managed.Wanted{
		Databases: w.Databases, Extensions: w.Extensions, Verifier: strings.TrimSpace(string(verifier)), Pooled: w.Pooled,
	})
}
