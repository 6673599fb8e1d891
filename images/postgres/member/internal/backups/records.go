// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/vault"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/repository"
)

// recordsEvery is how often the leader reads the results of verifications, and how full the volume of backups is.
const recordsEvery = time.Minute

// records are what the leader reads beside the backups.
type records struct {
	// verification are the results of verifications, as of verified.
	verification members.VerificationReport
	verified     time.Time
	// repository is how full the volume of backups is, as of measured.
	repository members.RepositoryReport
	measured   time.Time
}

// read what is due. answers reports whether the repository answered when it was read last.
func (r *records) read(ctx context.Context, s pgmember.Backup, leads, answers bool, log *slog.Logger) {
	r.readVerification(ctx, s, leads, answers, log)
	r.measure(ctx, s, leads, log)
}

// readVerification reads the results of verifications, if this member is the leader and backups are verified.
func (r *records) readVerification(ctx context.Context, s pgmember.Backup, leads, answers bool, log *slog.Logger) {
	if !leads || s.Verify == nil {
		r.verification, r.verified = members.VerificationReport{}, time.Time{}
		return
	}
	if !answers || time.Since(r.verified) < recordsEvery {
		return
	}
	r.verified = time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var report members.VerificationReport
	objects, err := objectstore.Configured(s)
	if err == nil {
		_, err = objects.Read(ctx, objectstore.Verification(s), &report)
	}
	if err != nil {
		log.Warn("cannot read the results of verifications of backups", "error", err)
		return
	}
	report.Asked = true
	r.verification = report
}

// measure the volume of backups, if this member is the leader and there is one. The last result stays while its host does not
// answer.
func (r *records) measure(ctx context.Context, s pgmember.Backup, leads bool, log *slog.Logger) {
	if !leads || s.Repository == "" {
		r.repository, r.measured = members.RepositoryReport{}, time.Time{}
		return
	}
	if time.Since(r.measured) < recordsEvery {
		return
	}
	r.measured = time.Now()
	settings, err := pgbackrest.Read(pgmember.FolderBackup, s.Repository)
	if err != nil || settings.Served == nil {
		return // reported as what blocks the archive
	}
	u, err := repository.Usage(ctx, settings)
	if err != nil {
		log.Warn("cannot find out how full the volume of backups is", "error", err)
		return
	}
	r.repository = vault.Report(r.repository, u)
}
