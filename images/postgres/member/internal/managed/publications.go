// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// publicationMark is the comment of a publication that Capstan made.
const publicationMark = "capstan.dev: publication"

// publications of one database: those that are missing or differ are made, and those that Capstan made and that are listed no more
// are dropped.
func publications(ctx context.Context, socket, database string, wanted []pgmember.Publication) error {
	conn, err := connect(ctx, socket, database)
	if err != nil {
		return err
	}
	defer Close(ctx, conn)
	made, err := List(ctx, conn, "select pubname::text from pg_publication where obj_description(oid, 'pg_publication') = $1 order by 1", publicationMark)
	if err != nil {
		return fmt.Errorf("cannot look at publications of database %q: %w", database, err)
	}
	var problems []error
	for _, n := range made {
		if !slices.ContainsFunc(wanted, func(w pgmember.Publication) bool { return w.Name == n }) {
			problems = append(problems, do(ctx, conn, fmt.Sprintf("drop publication %q", n), "drop publication "+name(n)))
		}
	}
	for _, w := range wanted {
		if err := publication(ctx, conn, w, slices.Contains(made, w.Name)); err != nil {
			problems = append(problems, fmt.Errorf("publication %q of database %q: %w", w.Name, database, err))
		}
	}
	return errors.Join(problems...)
}

func publication(ctx context.Context, conn *pgx.Conn, w pgmember.Publication, made bool) error {
	var all bool
	exists, err := row(ctx, conn, "look at it", "select puballtables from pg_publication where pubname = $1", []any{w.Name}, &all)
	if err != nil {
		return err
	}
	if exists && !made {
		return errors.New("it exists and Capstan did not make it: drop it, or choose another name")
	}
	there, err := List(ctx, conn, `select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname || '.' || c.relname = any($1) and c.relkind in ('r', 'p') order by 1`, nonNil(w.Tables))
	if err != nil {
		return fmt.Errorf("cannot look for its tables: %w", err)
	}
	has, err := List(ctx, conn, `select n.nspname || '.' || c.relname from pg_publication p join pg_publication_rel r on r.prpubid = p.oid
		join pg_class c on c.oid = r.prrelid join pg_namespace n on n.oid = c.relnamespace where p.pubname = $1 order by 1`, w.Name)
	if err != nil {
		return fmt.Errorf("cannot look at its tables: %w", err)
	}
	if !exists || all != w.AllTables || !slices.Equal(slices.Sorted(slices.Values(has)), slices.Sorted(slices.Values(there))) {
		if err := do(ctx, conn, "make it", publishing(w, there, exists, exists && !all && !w.AllTables && len(there) > 0)...); err != nil {
			return err
		}
	}
	for _, t := range w.Tables {
		if !slices.Contains(there, t) {
			return fmt.Errorf("table %q does not exist: create it, or remove it from spec.replication.publications", t)
		}
	}
	return nil
}

// publishing are statements that make a publication of the tables that are there, or change it.
func publishing(w pgmember.Publication, there []string, exists, alters bool) []string {
	quoted := make([]string, 0, len(there))
	for _, t := range there {
		schema, table, _ := strings.Cut(t, ".")
		quoted = append(quoted, pgx.Identifier{schema, table}.Sanitize())
	}
	list := strings.Join(quoted, ", ")
	if alters {
		return []string{"alter publication " + name(w.Name) + " set table " + list}
	}
	var statements []string
	if exists {
		statements = append(statements, "drop publication "+name(w.Name))
	}
	create := "create publication " + name(w.Name)
	switch {
	case w.AllTables:
		create += " for all tables"
	case list != "":
		create += " for table " + list
	}
	return append(statements, create, "comment on publication "+name(w.Name)+" is '"+publicationMark+"'")
}
