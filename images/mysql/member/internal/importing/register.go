// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// What became of an import is in the data itself, in a database whose name no user can have. So the next leader continues where the last one
// was, and a Database that is deleted and applied again does not import a second time.
const (
	register   = "`capstan`.`import`"
	noDatabase = 1049
	noTable    = 1146
)

// A state of an import, as the register has it.
type state struct {
	// Object is the uid of the Database that met the data last.
	Object string `json:"object"`
	// Databases that were begun to be copied. None: nothing was.
	Databases []string `json:"databases"`
	// Following: every row was copied.
	Following bool `json:"following"`
	// Server is the id of the source. Copied are its transactions whose rows were copied, and from File and Position on the rest is followed: what
	// was applied already is passed over by its id.
	Server   string   `json:"server"`
	Copied   gtid.Set `json:"copied"`
	File     string   `json:"file"`
	Position uint64   `json:"position"`
	// Other is the id of another server that the channel has followed, for good; "" for none.
	Other string `json:"other"`
	// Fence is what a cut-over has done to the source, or may have.
	Fence *fence         `json:"fence"`
	Cuts  importing.Cuts `json:"cuts"`
}

// A fence makes the source read-only for a cut-over. It has what the source was before.
type fence struct {
	Cut      string `json:"cut"`
	ReadOnly bool   `json:"readOnly"`
	Super    bool   `json:"super"`
}

func (s *state) begun() bool { return len(s.Databases) > 0 }

// cut notes the phase of a cut-over.
func (s *state) cut(c importing.Cut) {
	s.Cuts = append(slices.DeleteFunc(s.Cuts, func(o importing.Cut) bool { return o.ID == c.ID }), c)
}

// readState of the register. There is none before the first write.
func readState(ctx context.Context, here *mysql.Server) (s state, err error) {
	err = here.Session(ctx, "read the register of the import", func(c *sql.Conn) error {
		var raw []byte
		switch err := c.QueryRowContext(ctx, "SELECT state FROM "+register).Scan(&raw); {
		case mysql.Code(err) == noDatabase || mysql.Code(err) == noTable:
			return nil
		case err != nil:
			return err
		}
		return json.Unmarshal(raw, &s)
	})
	return s, err
}

// note the state in the register.
func (r *run) note(ctx context.Context) error {
	raw, err := json.Marshal(r.state)
	if err != nil {
		return err
	}
	return r.here.Session(ctx, "write the register of the import", func(c *sql.Conn) error {
		write := func() error {
			_, err := c.ExecContext(ctx, "REPLACE INTO "+register+" (id, state) VALUES (1, ?)", string(raw))
			return err
		}
		err := write()
		if mysql.Code(err) != noDatabase && mysql.Code(err) != noTable {
			return err
		}
		if _, err := c.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS `capstan`; CREATE TABLE IF NOT EXISTS "+register+
			" (id TINYINT PRIMARY KEY, state MEDIUMTEXT CHARACTER SET utf8mb4 NOT NULL)"); err != nil {
			return err
		}
		return write()
	})
}

// meet an object. The id of a cut-over that is requested when an object first meets its data cuts nothing over, or a manifest that is applied again
// would end the service of a source in use: also over volumes that an earlier object has left.
func (r *run) meet(ctx context.Context) error {
	if r.state.Object == r.config.Object {
		return nil
	}
	r.state.Object = r.config.Object
	r.state.Cuts = slices.DeleteFunc(r.state.Cuts, func(c importing.Cut) bool { return c.Phase == importing.CutSkipped })
	if f := r.state.Fence; f != nil {
		f.Cut = "" // what an earlier object did to the source is undone
	}
	if c := r.config.CutOver; c != nil && !slices.ContainsFunc(r.state.Cuts, func(o importing.Cut) bool { return o.ID == c.ID }) {
		r.state.cut(importing.Cut{ID: c.ID, Phase: importing.CutSkipped})
	}
	return r.note(ctx)
}
