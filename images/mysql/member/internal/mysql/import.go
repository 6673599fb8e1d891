// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// ImportChannel is the channel by which the leader follows the source of an import.
const ImportChannel = "capstan_import"

// noChannel is the code of the error that there is no channel of a name.
const noChannel = 3074

// Importer is the own server of the container, for the account of an import. Each text is one statement, and values travel beside it.
func Importer() (*Server, error) {
	cfg := config("unix", mysqlmember.FileSocket, mysqlmember.AccountImport, nil)
	cfg.MultiStatements, cfg.InterpolateParams = false, false
	cfg.Params["sql_mode"], cfg.Params["foreign_key_checks"], cfg.Params["time_zone"] = "'NO_AUTO_VALUE_ON_ZERO'", "0", "'+00:00'"
	return open(cfg)
}

// ImportStatus of the channel, by the names of its columns; nil when there is no channel.
func (s *Server) ImportStatus(ctx context.Context) (row map[string]string, err error) {
	err = s.Session(ctx, "look at the channel of the import", func(c *sql.Conn) error {
		row, err = OneRow(ctx, c, "SHOW REPLICA STATUS FOR CHANNEL "+Text(ImportChannel))
		if Code(err) == noChannel {
			return nil
		}
		return err
	})
	return row, err
}

// StopImport ends what the channel of an import does here, if there is one: no other member can be elected meanwhile.
func (s *Server) StopImport(ctx context.Context) error {
	row, err := s.ImportStatus(ctx)
	if row == nil || err != nil || row["Replica_IO_Running"] == "No" && row["Replica_SQL_Running"] == "No" {
		return err
	}
	return s.Do(ctx, "stop the channel of the import", "STOP REPLICA FOR CHANNEL "+Text(ImportChannel))
}

// EndImport removes the channel, if there is one, with what it has received and not applied.
func (s *Server) EndImport(ctx context.Context) error {
	if row, err := s.ImportStatus(ctx); row == nil || err != nil {
		return err
	}
	return s.Do(ctx, "remove the channel of the import", "STOP REPLICA FOR CHANNEL "+Text(ImportChannel), "RESET REPLICA ALL FOR CHANNEL "+Text(ImportChannel))
}

// Pattern is a pattern of names that only this name matches.
func Pattern(name string) string {
	return strings.NewReplacer(`\`, `\\`, "_", `\_`, "%", `\%`).Replace(name)
}
