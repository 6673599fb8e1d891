// SPDX-License-Identifier: Apache-2.0

import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.util.Collector;

/**
 * Counts numbers by their remainder. The count of a number follows from the number itself, so that a line "account NUMBER COUNT" shows
 * whether any number was lost or counted twice until then.
 */
public class Account {
  static final int KEYS = 4;

  static class Numbers implements SourceFunction<Long>, CheckpointedFunction {
    private final long pause;
    private final long end;
    private volatile boolean running = true;
    private long next;
    private transient ListState<Long> saved;

    Numbers(long pause, long end) {
      this.pause = pause;
      this.end = end;
    }

    @Override
    public void run(SourceContext<Long> out) throws Exception {
      while (running && next < end) {
        synchronized (out.getCheckpointLock()) {
          out.collect(next);
          next++;
        }
        Thread.sleep(pause);
      }
    }

    @Override
    public void cancel() {
      running = false;
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws Exception {
      saved.clear();
      saved.add(next);
    }

    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
      saved = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("next", Long.class));
      for (Long n : saved.get()) {
        next = n;
      }
    }
  }

  static class Count extends KeyedProcessFunction<Long, Long, String> {
    private transient ValueState<Long> count;

    @Override
    public void open(OpenContext context) {
      count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
    }

    @Override
    public void processElement(Long n, Context context, Collector<String> out) throws Exception {
      long c = (count.value() == null ? 0 : count.value()) + 1;
      count.update(c);
      out.collect("account " + n + " " + c);
    }
  }

  public static void main(String[] args) throws Exception {
    long pause = Long.parseLong(args[0]);
    long end = args.length > 1 ? Long.parseLong(args[1]) : Long.MAX_VALUE;
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
    // In reactive mode a source without this limit has as many instances as there are slots.
    env.addSource(new Numbers(pause, end), "numbers").uid("numbers").setMaxParallelism(1)
        .keyBy(new KeySelector<Long, Long>() {
          @Override
          public Long getKey(Long n) {
            return n % KEYS;
          }
        })
        .process(new Count()).uid("count")
        .print().uid("print");
    env.execute("account");
  }
}
