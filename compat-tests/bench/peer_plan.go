package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// step is one scenario on one broker in one round: what is measured, kept and,
// after an interruption, left out.
type step struct {
	Round    int    `json:"round"`
	Broker   string `json:"broker"` // empty: all at once
	Scenario string `json:"scenario"`
}

func (s step) String() string {
	broker := s.Broker
	if broker == "" {
		broker = "all"
	}
	return fmt.Sprintf("round %d, %s, %s", s.Round, broker, s.Scenario)
}

// failure is a step that gave no figures.
type failure struct {
	Step  step   `json:"step"`
	Error string `json:"error"`
}

// plan lists the steps in order. What is measured once comes behind the first
// round, so that a run that is cut short lacks a round and no row; what is rarely
// asked for comes last.
func (p *peerRun) plan() (steps []step) {
	var usual, rare []scenario
	for _, s := range p.chosen() {
		if s.rare {
			rare = append(rare, s)
		} else {
			usual = append(usual, s)
		}
	}
	for round := 1; round <= p.report.Rounds; round++ {
		for _, broker := range p.report.Brokers {
			for _, s := range p.chosen() {
				if s.warm != nil {
					steps = append(steps, step{round, broker, s.name})
				}
			}
		}
		if round == 1 {
			steps = append(steps, p.once(usual)...)
		}
	}
	return append(steps, p.once(rare)...)
}

// once are the steps of scenarios that are measured once.
func (p *peerRun) once(of []scenario) (steps []step) {
	for _, s := range of {
		switch {
		case s.together != nil:
			steps = append(steps, step{1, "", s.name})
		case s.alone != nil:
			for _, broker := range p.report.Brokers {
				if s.of == "" || strings.HasPrefix(broker, s.of) {
					steps = append(steps, step{1, broker, s.name})
				}
			}
		}
	}
	return steps
}

// chosen are the scenarios of this run, in their own order.
func (p *peerRun) chosen() (all []scenario) {
	for _, s := range peerScenarios() {
		if slices.Contains(p.report.Scenarios, s.name) {
			all = append(all, s)
		}
	}
	return all
}

// estimate is how long a step takes on a quiet machine.
func (p *peerRun) estimate(s step) time.Duration {
	sc := scenarioNamed(s.Scenario)
	d := sc.fixed + time.Duration(sc.lengths*float64(p.seconds()))
	if isKafka(s.Broker) {
		d += sc.kafka
	}
	return d
}

// session is what a warm process takes to come and go.
func (p *peerRun) session(broker string) time.Duration {
	if isKafka(broker) {
		return 30 * time.Second
	}
	return 8 * time.Second
}

// left is how long these steps take, told by how long those before took.
func (p *peerRun) left(steps []step) time.Duration {
	var sum time.Duration
	last := step{}
	for _, s := range steps {
		sum += p.estimate(s)
		if scenarioNamed(s.Scenario).warm != nil && (s.Broker != last.Broker || s.Round != last.Round) {
			sum += p.session(s.Broker)
		}
		last = s
	}
	if p.expected < time.Minute { // Too little to learn from.
		return sum
	}
	return time.Duration(float64(sum) * p.took.Seconds() / p.expected.Seconds())
}

// run does what is left of the plan; what it finds is saved after each step. A
// step that fails is noted and does not end the run.
func (p *peerRun) run(ctx context.Context) error {
	all := p.plan()
	left := slices.DeleteFunc(slices.Clone(all), func(s step) bool { return slices.Contains(p.report.Done, s) })
	p.report.Failed = nil
	defer p.endSession()
	for i, s := range left {
		remaining := p.left(left[i:])
		if p.limit > 0 && time.Since(p.began)+p.left(left[i:i+1]) > p.limit {
			fmt.Printf("== the time is up: %d of %d steps are not measured\n", len(left)-i, len(all))
			break
		}
		p.spare = p.limit - time.Since(p.began) - remaining
		fmt.Printf("== %s: %s (%d of %d; %v left)\n", time.Now().Format("15:04:05"), s, len(all)-len(left)+i+1, len(all), remaining.Round(10*time.Second))
		began := time.Now()
		expected := p.estimate(s)
		if p.needsSession(s) {
			expected += p.session(s.Broker)
		}
		if err := p.step(ctx, s); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Printf("   FAILED: %v\n", err)
			p.report.Failed = append(p.report.Failed, failure{s, err.Error()})
			p.endSession()
		} else {
			p.report.take(s, p.pending)
			p.took += time.Since(began)
			p.expected += expected
		}
		if err := p.report.write(p.file); err != nil {
			return err
		}
	}
	if n := len(p.report.Failed); n > 0 {
		return fmt.Errorf("%d steps failed, the first: %s: %s", n, p.report.Failed[0].Step, p.report.Failed[0].Error)
	}
	return nil
}

// step measures once; its figures are in p.pending afterwards.
func (p *peerRun) step(ctx context.Context, s step) error {
	sc := scenarioNamed(s.Scenario)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute+3*p.estimate(s))
	defer cancel()
	p.pending, p.now = nil, s.Broker
	switch {
	case sc.together != nil:
		p.endSession()
		return sc.together(ctx, p)
	case sc.alone != nil:
		p.endSession()
		return sc.alone(ctx, p, s.Broker)
	}
	if p.needsSession(s) {
		p.endSession()
		if err := p.startSession(ctx, s); err != nil {
			return err
		}
	}
	return sc.warm(ctx, p, p.live)
}

func (p *peerRun) needsSession(s step) bool {
	if scenarioNamed(s.Scenario).warm == nil {
		return false
	}
	return p.live == nil || p.liveOf != step{Round: s.Round, Broker: s.Broker}
}

// startSession starts a broker anew and warms it.
func (p *peerRun) startSession(ctx context.Context, s step) (err error) {
	b, dir, err := p.fresh(s.Broker)
	if err != nil {
		return err
	}
	p.live, p.liveDir, p.liveOf = b, dir, step{Round: s.Round, Broker: s.Broker}
	if _, err = b.start(ctx); err == nil {
		err = p.warmUp(ctx, b)
	}
	if err != nil {
		p.endSession()
	}
	return err
}

func (p *peerRun) endSession() {
	if p.live == nil {
		return
	}
	p.live.kill() // Its data are removed: nothing is gained by a stop in order.
	_ = os.RemoveAll(p.liveDir)
	p.live = nil
}

// fresh is a broker with an empty folder.
func (p *peerRun) fresh(name string) (broker, string, error) {
	dir, err := os.MkdirTemp(p.work, "peer-")
	if err != nil {
		return nil, "", err
	}
	b, err := newBroker(name, dir)
	if err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	return b, dir, nil
}

// warmUp loads a broker until it has used so much CPU time that code which is
// compiled as it runs is itself, at most 40 s.
func (p *peerRun) warmUp(ctx context.Context, b broker) error {
	const topic, partitions = "warm", 16
	if err := makeTopic(ctx, b.address(), topic, partitions); err != nil {
		return err
	}
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); {
		for _, l := range []rawLoad{
			{Connections: 2, InFlight: 5, Partitions: partitions, PerRequest: 8, Records: 64, Size: 1024},
			{Connections: 1, InFlight: 5, Partitions: partitions, PerRequest: 1, Records: 64, Size: 1024, Codec: 3},
			{Connections: 4, InFlight: 5, Partitions: partitions, PerRequest: 1, Records: 1, Size: 100},
		} {
			if _, err := produceRaw(ctx, b.address(), topic, l, min(time.Second, p.seconds())); err != nil {
				return err
			}
		}
		if used, err := cpuTime(b.pid()); err != nil || used > b.warmth() {
			break
		}
	}
	ends, err := topicEnds(ctx, b.address(), topic)
	if err == nil {
		_, err = fetchRaw(ctx, b.address(), topic, ends, 2)
	}
	return errors.Join(err, dropTopic(ctx, b.address(), topic))
}
