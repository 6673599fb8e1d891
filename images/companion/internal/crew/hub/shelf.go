// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/checkpoints"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/coordinator"
)

// shelfTime is how long the folder of checkpoints has to answer. It may be on a server that does not.
const shelfTime = 30 * time.Second

// A shelf uses the folder of checkpoints beside the loop of the hub.
type shelf struct {
	folder  checkpoints.Folder
	pass    func(coordinator.Event)
	records chan checkpoints.Record
	done    chan struct{}
	written chan struct{}
	// free has an entry while no look at the folder is under way.
	free chan struct{}
}

func newShelf(folder checkpoints.Folder, pass func(coordinator.Event)) *shelf {
	s := &shelf{
		folder: folder, pass: pass, records: make(chan checkpoints.Record, 1), done: make(chan struct{}), written: make(chan struct{}),
		free: make(chan struct{}, 1),
	}
	s.free <- struct{}{}
	go s.write()
	return s
}

// record what is known. Of several records the newest is written.
func (s *shelf) record(r checkpoints.Record) {
	select {
	case <-s.records:
	default:
	}
	s.records <- r
}

func (s *shelf) write() {
	defer close(s.written)
	for {
		select {
		case r := <-s.records:
			s.pass(coordinator.Recorded{Err: s.folder.Write(r)})
		case <-s.done:
			select {
			case r := <-s.records:
				_ = s.folder.Write(r) // The loop has ended.
			default:
			}
			return
		}
	}
}

// find what there is, or report that the folder does not answer.
func (s *shelf) find(reported []crew.Checkpoint) {
	answer := make(chan coordinator.Found, 1)
	silent := coordinator.Found{Err: fmt.Errorf("the folder of checkpoints %s does not answer within %s", s.folder.Dir, shelfTime)}
	select {
	case <-s.free:
	default: // The look before is still under way.
		go s.pass(silent)
		return
	}
	go func() {
		found, err := s.folder.Find(reported)
		answer <- coordinator.Found{Found: found, Err: err}
		s.free <- struct{}{}
	}()
	go func() {
		select {
		case found := <-answer:
			s.pass(found)
		case <-time.After(shelfTime):
			s.pass(silent)
		}
	}()
}

// remove old checkpoints beside everything else, because it may take long.
func (s *shelf) remove(names, kept []string) {
	go func() {
		gone, err := s.folder.Remove(names, kept)
		s.pass(coordinator.Removed{Names: gone, Err: err})
	}()
}

// close the shelf, once the last record is written or the folder does not answer.
func (s *shelf) close() {
	close(s.done)
	select {
	case <-s.written:
	case <-time.After(farewell):
	}
}
