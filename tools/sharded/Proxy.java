import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import org.apache.shardingsphere.proxy.config.ProxyConfigurationLoader;
import org.apache.shardingsphere.proxy.frontend.netty.ServerHandlerInitializer;
import org.apache.shardingsphere.proxy.frontend.protocol.FrontDatabaseProtocolTypeFactory;
import org.apache.shardingsphere.proxy.initializer.BootstrapInitializer;

/** ShardingSphere-Proxy on one address: its own main class listens on all addresses. */
public final class Proxy {
    /** The arguments are the address, the port, and the configuration's directory below the class path. */
    public static void main(String[] arguments) throws Exception {
        String address = arguments[0];
        int port = Integer.parseInt(arguments[1]);
        new BootstrapInitializer().init(ProxyConfigurationLoader.load("/" + arguments[2] + "/"), port);
        EventLoopGroup acceptor = new NioEventLoopGroup(1);
        EventLoopGroup workers = new NioEventLoopGroup();
        new ServerBootstrap()
            .group(acceptor, workers)
            .channel(NioServerSocketChannel.class)
            .childOption(ChannelOption.WRITE_BUFFER_WATER_MARK, new WriteBufferWaterMark(8 << 20, 16 << 20))
            .childOption(ChannelOption.ALLOCATOR, PooledByteBufAllocator.DEFAULT)
            .childOption(ChannelOption.TCP_NODELAY, true)
            .childHandler(new ServerHandlerInitializer(FrontDatabaseProtocolTypeFactory.getDatabaseType()))
            .bind(address, port).sync()
            .channel().closeFuture().sync();
    }
}
