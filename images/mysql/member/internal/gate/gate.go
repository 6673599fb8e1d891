// SPDX-License-Identifier: Apache-2.0

// Package gate decides whether a member's server may start.
package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/standstill"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
)

// Check returns what blocks the server of a member: a volume.Problem that a person has to solve, a volume.Wait while a person wants it to be
// stopped, or another error.
func Check(n layout.Names, copies *certificate.Copies) error {
	if err := volume.CheckImage(layout.Server); err != nil {
		return err
	}
	if err := volume.Claim(layout.Mark, mysqlmember.FolderData, n.Identity, n.Version); err != nil {
		return err
	}
	if err := checkVersion(mysqlmember.FolderData, n.Version); err != nil {
		return err
	}
	if _, err := copies.Refresh(time.Now()); err != nil {
		return err
	}
	config, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	return standstill.Check(config.Fence, n.Name, layout.Stopped, mysqlmember.FolderData)
}

// checkVersion of data: it opens with the series that wrote it. The server keeps beside the data which versions opened it.
func checkVersion(data, series string) error {
	raw, err := os.ReadFile(filepath.Join(data, "mysql_upgrade_history"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no data yet
	}
	var history struct {
		Upgrades []struct {
			Version string `json:"version"`
		} `json:"upgrade_history"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &history)
	}
	if err != nil {
		return fmt.Errorf("cannot find out which version the data is of: %w", err)
	}
	if len(history.Upgrades) == 0 {
		return nil
	}
	last := history.Upgrades[len(history.Upgrades)-1].Version
	if strings.HasPrefix(last, series+".") {
		return nil
	}
	return &volume.Problem{Reason: members.ReasonDataOfAnotherVersion, Message: fmt.Sprintf("the data is of MySQL %s, and this member has the series %s: "+
		"set spec.version to the series of the data", last, series)}
}
