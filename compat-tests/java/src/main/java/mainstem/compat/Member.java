package mainstem.compat;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Member ADDRESS TOPIC GROUP PROTOCOL: reads in a group and commits until standard input ends, and then leaves. */
final class Member {
    private static volatile boolean ended;

    public static void main(String[] args) throws Exception {
        var input = new Thread(() -> {
            try {
                System.in.transferTo(System.err);
            } catch (java.io.IOException e) {
                System.err.println(e);
            }
            ended = true;
        });
        input.setDaemon(true);
        input.start();
        var settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.id", args[2]);
        settings.put("group.protocol", args[3]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        if (args[3].equals("classic")) {
            settings.put("session.timeout.ms", "6000");
            settings.put("heartbeat.interval.ms", "300");
        }
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(args[1]), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> gone) {
                    System.out.println("assigned " + (consumer.assignment().size() - gone.size()));
                }

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> come) {
                    System.out.println("assigned " + consumer.assignment().size());
                }
            });
            while (!ended) {
                var records = consumer.poll(Duration.ofMillis(100));
                if (records.isEmpty()) continue;
                // Committed before it is told: whatever was told is never read again.
                consumer.commitSync();
                records.forEach(r -> System.out.println("record " + r.value()));
            }
        }
    }

    private Member() {}
}
