// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"
	"strings"
)

// updateLimit is how long the update of one extension may take.
const updateLimit = "15min"

// UpdateExtensions brings extensions of all databases to the version that comes with the server behind a socket's folder. It returns
// which could not be, and why.
func UpdateExtensions(ctx context.Context, socket string) (stuck string, err error) {
	conn, err := connect(ctx, socket, "postgres")
	if err != nil {
		return "", err
	}
	databases, err := list(ctx, conn, "select datname::text from pg_database where datallowconn order by 1")
	_ = conn.Close(context.WithoutCancel(ctx))
	if err != nil {
		return "", fmt.Errorf("cannot list databases: %w", err)
	}
	var all []string
	for _, d := range databases {
		some, err := updateExtensions(ctx, socket, d)
		if err != nil {
			return "", err
		}
		all = append(all, some...)
	}
	return strings.Join(all, "; "), nil
}

// updateExtensions of one database.
func updateExtensions(ctx context.Context, socket, database string) ([]string, error) {
	conn, err := connect(ctx, socket, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	old, err := list(ctx, conn, `select name::text from pg_available_extensions where installed_version <> default_version order by 1`)
	if err != nil {
		return nil, fmt.Errorf("cannot look for extensions of database %q: %w", database, err)
	}
	if err := do(ctx, conn, "set statement_timeout = '"+updateLimit+"'"); err != nil {
		return nil, err
	}
	var stuck []string
	for _, e := range old {
		if err := do(ctx, conn, "alter extension "+name(e)+" update"); err != nil {
			stuck = append(stuck, fmt.Sprintf("extension %q of database %q stays in its former version: %v", e, database, err))
		}
	}
	return stuck, nil
}
