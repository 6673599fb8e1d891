// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/function/database/facts"
)

const (
	// mostProcesses of the backup tool: more make a bucket refuse requests before they make a backup faster.
	mostProcesses = 16
	// leastDeadline and leastVerifyDeadline are how long a backup and a verification may take however small the data is.
	leastDeadline       = 6 * time.Hour
	leastVerifyDeadline = 12 * time.Hour
	// passes of a verification over the data: it restores, and then reads twice what was restored.
	passes = 2
	// usedStep is the step, in percent, that members round the usage of a volume down to.
	usedStep = 5
)

// leastRate of a backup in bytes per second, for platforms that do not set another.
var leastRate = resource.MustParse("20Mi")

// Processes of the backup tool at a time: one for each started CPU of a member. They compress where the data is.
func Processes(s *facts.Cluster) int64 {
	return min(max(1, (s.Size.CPU.MilliValue()+999)/1000), mostProcesses)
}

// parallel processes as members read them: 0 where there is one, as before the field existed.
func parallel(s *facts.Cluster) int64 {
	if n := Processes(s); n > 1 {
		return n
	}
	return 0
}

// Deadline is how long a backup may take: as long as all data takes at the least rate of the platform, in whole hours, and twice as long
// where it is copied first.
func Deadline(s *facts.Cluster) time.Duration {
	times := int64(1)
	if s.Traits.Backups.Copies {
		times++
	}
	return max(leastDeadline, atLeastRate(s, times))
}

// VerifyDeadline is how long a verification may take. The program in its pod ends by itself half an hour earlier, to report why.
func VerifyDeadline(s *facts.Cluster) time.Duration {
	return max(leastVerifyDeadline, atLeastRate(s, passes))
}

// VerifyLimit is when that program ends by itself, and whether it does not know by itself.
func VerifyLimit(s *facts.Cluster) (limit time.Duration, longer bool) {
	d := VerifyDeadline(s)
	return d - 30*time.Minute, d > leastVerifyDeadline
}

// atLeastRate is how long so many passes over the data take, in whole hours: a deadline is to change seldom.
func atLeastRate(s *facts.Cluster, times int64) time.Duration {
	rate := leastRate.Value()
	if q := s.Settings.Database.Backup.LeastRate; q != nil && q.Sign() > 0 {
		rate = q.Value()
	}
	perHour := rate * int64(time.Hour/time.Second)
	hours := (times*dataSize(s) + perHour - 1) / perHour
	return time.Duration(hours) * time.Hour
}

// dataSize is what is on the fullest volume of a member, as far as members have measured it, or else as much as a volume takes.
func dataSize(s *facts.Cluster) int64 {
	var most int64
	for _, m := range s.Seen.Members {
		if m.Volume == nil {
			continue
		}
		if size, err := resource.ParseQuantity(m.Volume.FileSystem); err == nil {
			most = max(most, size.Value()/100*int64(min(100, m.Volume.UsedPercent+usedStep)))
		}
	}
	if most > 0 {
		return most
	}
	return s.Sizes.Created.Value()
}
